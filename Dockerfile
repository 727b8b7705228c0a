# The operator and the agent, from uv.lock. `docker build -t 5spot:0.1.0 .`; the list of what is inside, without building
# an image: `docker build --target sbom --output dist .`, or `make sbom` where there is no Docker.
#
# The base is pinned by the digest of its index, for all architectures. Another one: --build-arg PYTHON=…
ARG PYTHON=python:3.13.9-slim-trixie@sha256:326df678c20c78d465db501563f3492d17c42a4afe33a1f2bf5406a1d56b0e86

FROM ${PYTHON} AS build
# All files of the image carry this time, so that the same sources make the same layers.
ARG SOURCE_DATE_EPOCH=315532800
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /src
COPY . .
# uv itself is the one that uv.lock names, checked by its hash.
RUN .ci/install /opt/5spot

FROM build AS list
RUN .ci/sbom /sbom/5spot.cdx.json

FROM scratch AS sbom
COPY --from=list /sbom /

FROM ${PYTHON}
LABEL org.opencontainers.image.title="5spot" \
      org.opencontainers.image.description="Adds machines to Cluster API clusters on schedule, and takes them out again." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/5spot /opt/5spot
# Nothing is written at run time: the root file system can be read-only, without any volume.
ENV PATH=/opt/5spot/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /
# By number, so that Kubernetes can check that it is not root.
USER 65532:65532
# Metrics, health, webhooks.
EXPOSE 8080 8081 9443
ENTRYPOINT ["5spot"]
CMD ["run"]
