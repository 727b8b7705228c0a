# The operator and the agent, from uv.lock. `docker build -t 5spot:0.1.0 .`; the list of what is inside, without building
# an image: `docker build --target sbom --output dist .`, or `make sbom` where there is no Docker.
#
# To pin the base by its digest as well: --build-arg PYTHON=python:3.13.9-slim-trixie@sha256:…
ARG PYTHON=python:3.13.9-slim-trixie

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
