"""What the shipped manifests promise; that an API server enforces it is tests/integration/test_agent_policy.py."""

import re

from crds.names import LABEL_RECLAIM_AGENT, RECLAIM_AGENT_ENABLED, RECLAIM_ANNOTATIONS, RECLAIM_NAMESPACE
from tests.integration.agents import ACCOUNT, MANIFESTS, document, documents

POD = document("DaemonSet")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def test_it_runs_where_the_controller_asks_for_it_and_tolerates_everything():
    assert POD["nodeSelector"][LABEL_RECLAIM_AGENT] == RECLAIM_AGENT_ENABLED
    assert POD["tolerations"] == [{"operator": "Exists"}]


def test_it_sees_the_hosts_processes_and_events():
    assert POD["hostPID"] is True
    assert POD["hostNetwork"] is True


def test_it_has_one_power_and_no_way_to_more():
    security = CONTAINER["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert security["allowPrivilegeEscalation"] is False
    assert security["privileged"] is False
    assert security["readOnlyRootFilesystem"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


def test_of_the_hosts_files_it_sees_the_machine_id_only_and_cannot_write_it():
    (volume,) = POD["volumes"]
    (mount,) = CONTAINER["volumeMounts"]
    assert volume["hostPath"] == {"path": "/etc/machine-id", "type": "File"}
    assert mount["readOnly"] is True
    assert CONTAINER["args"] == [f"--machine-id-file={mount['mountPath']}"]


def test_its_node_name_comes_from_where_it_runs():
    (variable,) = CONTAINER["env"]
    assert variable == {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def test_the_image_is_pinned_to_a_version():
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+", CONTAINER["image"])


def test_it_opens_no_port():
    assert "ports" not in CONTAINER


def test_everything_namespaced_lives_in_one_namespace():
    namespaced = {"ServiceAccount", "Role", "RoleBinding", "DaemonSet"}
    assert {item["metadata"]["namespace"] for item in documents() if item["kind"] in namespaced} == {RECLAIM_NAMESPACE}


def test_the_policy_speaks_of_the_agents_account_and_annotations():
    text = (MANIFESTS / "30-policy.yaml").read_text()
    assert f"system:serviceaccount:{RECLAIM_NAMESPACE}:{ACCOUNT}" in text
    quoted = re.findall(r"'(5spot\.finos\.org/[\w-]+)'", text)
    assert set(quoted) == set(RECLAIM_ANNOTATIONS)
    assert document("ValidatingAdmissionPolicy")["spec"]["failurePolicy"] == "Fail"
    assert document("ValidatingAdmissionPolicyBinding")["spec"]["validationActions"] == ["Deny"]


def test_the_role_reads_nodes_and_config_maps_and_patches_nodes():
    assert document("ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]}
    ]
    assert document("Role")["rules"] == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
