# StreamSan on Debian, for jobs without a GPU:
#   podman build -t streamsan -f packaging/container/debian.Dockerfile dist/     dist/: of scripts/release/build
#   podman run --rm -v "$PWD:/work" streamsan --sim --require-cuda ./app
FROM debian:stable-slim
RUN --mount=type=bind,target=/packages \
    apt-get update \
    && apt-get install -y --no-install-recommends /packages/streamsan_*_amd64.deb \
    && rm -rf /var/lib/apt/lists/* \
    && streamsan --version
WORKDIR /work
ENTRYPOINT ["streamsan"]
