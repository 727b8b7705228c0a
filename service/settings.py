"""All settings, from the environment and from flags; no other module reads the environment."""

import argparse
import re
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from crds.providers import (
    DEFAULT_BOOTSTRAP_GROUPS,
    DEFAULT_BOOTSTRAP_KINDS,
    DEFAULT_INFRASTRUCTURE_GROUPS,
    DEFAULT_INFRASTRUCTURE_KINDS,
    DEFAULT_REFUSED_KINDS,
    ProviderPolicy,
    kind_patterns,
)
from service.clock import Clock, SimulatedClock, SystemClock
from service.decide.hosts import DEFAULT_HOST_IDENTITY, HostIdentities
from service.notify.sink import SinkOptions
from service.sharding.leases import LeaseTimes
from webhooks.configuration import MUTATING_NAME, VALIDATING_NAME

PREFIX: Final = "FIVESPOT_"
POD_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE: Final = "5spot-system"

_KUBECONFIG: Final = (f"{PREFIX}KUBECONFIG", "KUBECONFIG")
_KUBECONFIGS: Final = frozenset(name.lower() for name in _KUBECONFIG)

Port = Annotated[int, Field(ge=0, le=65535)]


def _split(given: object) -> object:
    if not isinstance(given, str):
        return given
    return tuple(part.strip() for part in given.split(",") if part.strip())


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Kinds = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), AfterValidator(kind_patterns)]


def _identity(text: str) -> str:
    HostIdentities.parse(text)
    return text


def _https(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.username:
        raise ValueError("must begin with https:// and name a host and no user")
    return text


_SEGMENT: Final = r"([A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})*"
_PATH: Final = r"([A-Za-z0-9._~!$&'()*+,;=@:/-]|%[0-9A-Fa-f]{2})*"
_REST: Final = r"([A-Za-z0-9._~!$&'()*+,;=@:/?-]|%[0-9A-Fa-f]{2})*"
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:(//\[[0-9A-Fa-f:.]+\])?"
URI_REFERENCE: Final = rf"^({_SCHEME}{_PATH}|{_SEGMENT}(/{_PATH})?)(\?{_REST})?(#{_REST})?$"
"""As RFC 3986 has it, the chart's schema too; a relative one has no colon before its first slash."""


def _uri_reference(text: str) -> str:
    if not re.fullmatch(URI_REFERENCE, text):
        raise ValueError("must be a URI reference (RFC 3986), such as /5spot/production")
    return text


class InvalidSettingsError(ValueError):
    """A setting is invalid; the message names it and where it came from."""


def _own_namespace() -> str:
    return POD_NAMESPACE_FILE.read_text().strip() if POD_NAMESPACE_FILE.exists() else DEFAULT_NAMESPACE


class Settings(BaseSettings):
    """Settings of `5spot run`. A flag takes precedence over the environment, the environment over the default."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, populate_by_name=True, extra="ignore")

    bind_address: str = Field("::", description="Address to listen on; `::` is every address, IPv4 too.")
    webhook_port: Port = Field(9443, description="Port of the admission webhooks (TLS); 0 takes a free one.")
    health_port: Port = Field(8081, description="Port of /health and /ready; 0 takes a free one.")
    metrics_port: Port = Field(8080, description="Port of /metrics; 0 takes a free one.")

    kubeconfig: Path | None = Field(
        None,
        validation_alias=AliasChoices(*_KUBECONFIG),
        description="Kubeconfig of the management cluster; without it, the pod's service account is used.",
    )
    context: str | None = Field(None, description="Context in the kubeconfig; by default the current one.")
    namespace: str = Field(
        default_factory=_own_namespace,
        validation_alias=AliasChoices(f"{PREFIX}NAMESPACE", "POD_NAMESPACE"),
        description="Namespace of the operator itself, for its Secret, Service and Leases; by default the pod's own.",
    )
    namespaces: Names = Field((), description="Namespaces to watch, separated by commas; by default all.")
    capi_contract: Literal["auto", "v1beta1", "v1beta2"] = Field(
        "auto", description="Cluster API contract to use; auto asks the API server."
    )

    bootstrap_groups: Names = Field(
        tuple(sorted(DEFAULT_BOOTSTRAP_GROUPS)), description="API groups allowed in bootstrapSpec."
    )
    infrastructure_groups: Names = Field(
        tuple(sorted(DEFAULT_INFRASTRUCTURE_GROUPS)), description="API groups allowed in infrastructureSpec."
    )
    bootstrap_kinds: Kinds = Field(
        DEFAULT_BOOTSTRAP_KINDS, description="Kinds allowed in bootstrapSpec; `*` stands for any text."
    )
    infrastructure_kinds: Kinds = Field(
        DEFAULT_INFRASTRUCTURE_KINDS, description="Kinds allowed in infrastructureSpec; `*` stands for any text."
    )
    refused_kinds: Kinds = Field(
        DEFAULT_REFUSED_KINDS,
        description="Kinds refused even if the two lists above allow them; `*` stands for any text.",
    )

    host_identity: Annotated[str, AfterValidator(_identity)] = Field(
        DEFAULT_HOST_IDENTITY,
        description="Which fields of an infrastructure spec identify a host, `Kind.group: field, field=default; …`; "
        "two ScheduledMachines never get the same host. Kinds that are not listed identify none.",
    )

    controller: bool = Field(default=True, description="Whether to run the controller; without it, only webhooks.")
    webhooks: bool = Field(default=True, description="Whether to serve the admission webhooks.")
    certificates: Literal["self-managed", "files"] = Field(
        "self-managed",
        description="Where the webhooks' certificate comes from: the operator's own CA, or files that others renew.",
    )
    certificate_file: Path | None = Field(None, description="With certificates=files: the certificate chain (PEM).")
    key_file: Path | None = Field(None, description="With certificates=files: its private key (PEM).")
    authority_file: Path | None = Field(
        None,
        description="With certificates=files: the CA (PEM) that the operator writes into the webhook configurations; "
        "without it, it leaves their caBundle alone.",
    )
    certificate_secret: str = Field(
        "5spot-webhook-certificates", description="Secret in which the self-managed CA and certificate are stored."
    )
    webhook_service: str = Field(
        "fivespot-webhook", description="Service through which API servers reach the webhooks."
    )
    webhook_hosts: Names = Field(
        (), description="More DNS names and IP addresses for the self-managed certificate, such as 127.0.0.1."
    )
    webhook_client_ca_file: Path | None = Field(
        None,
        description="CA (PEM) of the certificates that callers of the webhooks must present; none by default.",
    )
    validating_configuration: str = Field(
        VALIDATING_NAME, description="ValidatingWebhookConfiguration whose caBundle the operator maintains."
    )
    mutating_configuration: str = Field(
        MUTATING_NAME, description="MutatingWebhookConfiguration whose caBundle the operator maintains."
    )

    authority_settle_seconds: float = Field(
        300.0,
        ge=0,
        description="How long a new CA is published before it signs the certificate, so that all API servers know it.",
    )
    authority_retire_seconds: float = Field(
        86400.0, ge=0, description="How long an old CA stays in the caBundle after it was replaced."
    )

    calendar_config_maps: bool = Field(
        default=False,
        description="Whether calendars may take their ICS from ConfigMaps; the operator needs to read these.",
    )
    max_override_days: float = Field(
        31.0,
        gt=0,
        le=366,
        description="How many days after its acceptance an override may end; a longer one does not count.",
    )
    reclaim_reenable: Literal["Anyone", "Acknowledged"] = Field(
        "Anyone",
        description="What returns a machine to service after an emergency reclaim: Anyone who enables its schedule, or "
        "besides, a user who acknowledges the reclaim, as `5spot resume` does.",
    )
    machine_metrics: bool = Field(
        default=False,
        description="Whether metrics name the ScheduledMachines that are in trouble, with their messages. Everyone "
        "who can read the metrics then sees both.",
    )
    max_provisioning: int = Field(
        0,
        ge=0,
        le=100_000,
        description="How many machines of one Cluster are provisioned at a time, from their creation until their Nodes "
        "are Ready; 0 means no limit. An annotation of the Cluster outranks it.",
    )
    max_draining: int = Field(
        0,
        ge=0,
        le=100_000,
        description="How many machines of one Cluster are shut down at a time, from the start of the drain until the "
        "Machine is gone; 0 means no limit. An annotation of the Cluster outranks it.",
    )
    dry_run: bool = Field(
        default=False,
        description="Whether only to report what schedules would have created and removed. The kill switch, "
        "reclaims and deletions act all the same; an annotation of a ScheduledMachine outranks it.",
    )
    notify_url: Annotated[str, AfterValidator(_https)] | None = Field(
        None,
        description="Address, https://, to which notifications are sent as CloudEvents; without it and without "
        "notify_secret_folder none are.",
    )
    notify_secret_folder: Path | None = Field(
        None,
        description="Folder with the files of a Secret: `url` (instead of notify_url), `authorization` (the value of "
        "that header) and `ca.crt` (the CA of the receiver); each is optional.",
    )
    notify_closing_minutes: float = Field(
        15.0, ge=0, le=1440, description="How many minutes before a shutdown a notification announces it; 0: none does."
    )
    notify_source: Annotated[str, AfterValidator(_uri_reference)] = Field(
        "/5spot",
        min_length=1,
        max_length=256,
        json_schema_extra={"pattern": URI_REFERENCE},
        description="The `source` of the CloudEvents: a URI, or a path such as `/5spot/production`, that tells this "
        "operator from others.",
    )
    workers: int = Field(16, ge=1, le=256, description="How many ScheduledMachines are reconciled at the same time.")
    instance_count: int = Field(
        1,
        ge=1,
        le=64,
        validation_alias=AliasChoices("OPERATOR_INSTANCE_COUNT"),
        description="Number of shards over which the ScheduledMachines are spread.",
    )
    instance_id: int | None = Field(
        None,
        ge=0,
        validation_alias=AliasChoices("OPERATOR_INSTANCE_ID"),
        description="Shard that this replica prefers; by default the number at the end of the host name, else any.",
    )
    leases: bool = Field(
        default=True,
        description="Whether to act only for shards whose Lease is held; if not, this must be the only replica.",
    )
    lease_seconds: float = Field(
        15.0, ge=1, le=600, description="Another replica may acquire a Lease that was not renewed for this long."
    )
    lease_renew_seconds: float = Field(
        10.0,
        gt=0,
        le=600,
        description="A replica that could not renew its Lease for this long stops acting.",
    )
    lease_retry_seconds: float = Field(
        2.0, gt=0, le=60, description="Pause between renewals of a Lease, and between attempts to acquire one."
    )
    drain_seconds: float = Field(10.0, ge=0, le=600, description="How long the webhooks go on answering after SIGTERM.")
    stop_seconds: float = Field(
        20.0, ge=0, le=600, description="How long running passes may take after SIGTERM before they are abandoned."
    )

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Lowest level that is logged.")
    log_format: Literal["json", "console"] = Field("json", description="One JSON object per line, or readable text.")

    at: AwareDatetime | None = Field(
        None,
        description="Simulated start time of the clock that schedules follow, RFC 3339; for demonstrations and tests.",
    )
    speed: float = Field(1.0, gt=0, le=100_000, description="How many times faster than real time the clock runs.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then the environment; an empty variable for the kubeconfig counts as unset, as in kubectl."""
        del settings_cls, dotenv_settings, file_secret_settings
        if isinstance(env_settings, EnvSettingsSource):
            given = env_settings.env_vars.items()
            env_settings.env_vars = {name: value for name, value in given if value or name not in _KUBECONFIGS}
        return init_settings, env_settings

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.certificates == "files" and not (self.certificate_file and self.key_file):
            raise ValueError("certificates=files needs certificate_file and key_file")
        if self.instance_id is not None and self.instance_id >= self.instance_count:
            raise ValueError(f"instance_id must be less than instance_count, {self.instance_count}")
        if not self.lease_retry_seconds < self.lease_renew_seconds < self.lease_seconds:
            raise ValueError("lease_retry_seconds must be less than lease_renew_seconds, that less than lease_seconds")
        if self.lease_seconds - self.lease_renew_seconds < 1:
            raise ValueError("lease_seconds must be at least a second more than lease_renew_seconds")
        return self

    @property
    def policy(self) -> ProviderPolicy:
        """The groups and kinds allowed in bootstrapSpec and infrastructureSpec."""
        return ProviderPolicy(
            bootstrap_groups=frozenset(self.bootstrap_groups),
            infrastructure_groups=frozenset(self.infrastructure_groups),
            bootstrap_kinds=self.bootstrap_kinds,
            infrastructure_kinds=self.infrastructure_kinds,
            refused_kinds=self.refused_kinds,
        )

    @property
    def notification_sink(self) -> SinkOptions:
        """Where notifications go."""
        return SinkOptions(self.notify_url, self.notify_secret_folder)

    @property
    def max_override(self) -> timedelta:
        """How long after its acceptance an override may end."""
        return timedelta(days=self.max_override_days)

    @property
    def host_identities(self) -> HostIdentities:
        """The fields that identify a host, by kind."""
        return HostIdentities.parse(self.host_identity)

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """The host names of the self-managed certificate."""
        service = f"{self.webhook_service}.{self.namespace}.svc"
        return (service, f"{service}.cluster.local", f"{self.webhook_service}.{self.namespace}", *self.webhook_hosts)

    @property
    def preferred_shard(self) -> int | None:
        """The shard that this replica acquires first: as set, or by a StatefulSet pod's ordinal; None for any."""
        if self.instance_id is not None:
            return self.instance_id
        ordinal = re.search(r"-([0-9]{1,4})$", socket.gethostname())
        if ordinal is not None:
            return int(ordinal[1]) % self.instance_count
        return 0 if self.instance_count == 1 else None

    @property
    def lease_times(self) -> LeaseTimes:
        """The times of leader election."""
        return LeaseTimes(self.lease_seconds, self.lease_renew_seconds, self.lease_retry_seconds)

    def clock(self) -> Clock:
        """The clock that schedules follow."""
        if self.at is None and self.speed == 1.0:
            return SystemClock()
        return SimulatedClock.starting(self.at or SystemClock().now(), self.speed)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds one flag per setting, with the description of its field as help."""
    for name, field in Settings.model_fields.items():
        flag = f"--{name.replace('_', '-')}"
        if field.annotation is bool:
            _add_switch(parser, name, field)
        else:
            parser.add_argument(flag, metavar=_metavar(field), default=None, help=_help(name, field))


def _add_switch(parser: argparse.ArgumentParser, name: str, field: FieldInfo) -> None:
    """Adds `--webhooks`, `--no-webhooks`, and `--webhooks=false` as in Go programs."""
    flag = name.replace("_", "-")
    how: dict[str, Any] = {"dest": name, "default": None}
    parser.add_argument(
        f"--{flag}", nargs="?", const=True, type=_switch, metavar="BOOL", help=_help(name, field), **how
    )
    parser.add_argument(f"--no-{flag}", action="store_false", help=f"the same as --{flag}=false", **how)


def _switch(text: str) -> bool:
    known = {"true": True, "false": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return known[text.lower()]


def from_flags(args: argparse.Namespace) -> Settings:
    """The settings with the flags that were given; `InvalidSettingsError` if one is invalid."""
    given = {name: getattr(args, name, None) for name in Settings.model_fields}
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidSettingsError("; ".join(_messages(error))) from None


def variables(name: str, field: FieldInfo) -> tuple[str, ...]:
    """The environment variables of a setting; the first that is set counts."""
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        return tuple(str(choice) for choice in alias.choices)
    return (f"{PREFIX}{name.upper()}",)


def shown_default(field: FieldInfo) -> str:
    """A default as a user would write it."""
    value = field.default
    if field.default_factory is not None or value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def reference() -> str:
    """The documentation page that lists every setting; `service.reference` writes it."""
    head = (
        "# Settings of `5spot run`\n\n"
        "A flag takes precedence over the environment, the environment over the default. If two variables are named, "
        "the first that is set counts.\n\n"
        "| flag | environment | default | meaning |\n|---|---|---|---|\n"
    )
    return head + "".join(_row(name, field) for name, field in Settings.model_fields.items())


def _row(name: str, field: FieldInfo) -> str:
    flag = name.replace("_", "-")
    places = ", ".join(f"`{variable}`" for variable in variables(name, field))
    default = shown_default(field)
    quoted = f"`{default}`" if default else ""
    meaning = str(field.description).replace("|", "\\|")
    return f"| `--{flag}` | {places} | {quoted} | {meaning} |\n"


def _messages(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False, include_context=False):
        where = str(detail["loc"][0]) if detail["loc"] else ""
        message = str(detail["msg"]).removeprefix("Value error, ")
        if where:
            yield f"{_flag_of(where)}: {message}, not {detail['input']!r}"
        else:
            yield message


def _flag_of(location: str) -> str:
    for name, field in Settings.model_fields.items():
        if location == name or location in variables(name, field):
            return f"--{name.replace('_', '-')} ({' or '.join(variables(name, field))})"
    return location


def _help(name: str, field: FieldInfo) -> str:
    default = shown_default(field)
    tail = f" Default: {default}." if default else ""
    return f"{field.description}{tail} [{', '.join(variables(name, field))}]".replace("%", "%%")


def _metavar(field: FieldInfo) -> str:
    kind: Any = field.annotation
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    options = [option for option in (get_args(kind) or (kind,)) if option is not type(None)]
    if Path in options:
        return "FILE"
    if datetime in options:
        return "TIME"
    if get_origin(kind) is tuple and str in options:
        return "LIST"
    if int in options or float in options:
        return "N"
    return "TEXT"
