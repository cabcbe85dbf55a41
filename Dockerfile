# syntax=docker/dockerfile:1
# The worker in a container: without a GPU, not as root, and with a read-only root file system if you like.
#
#   docker build -t neuco-worker .
#   docker run --read-only --tmpfs /tmp --cap-drop ALL -v "$PWD/my-challenge:/challenge" -e EVALAI_TOKEN neuco-worker
#
# /challenge contains challenge.yaml, tasks, ids, the secret and the state; user 10001 must be able to write to it.

FROM python:3.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY constraints.txt .
RUN python -m venv /opt/neuco && /opt/neuco/bin/pip install --upgrade --constraint constraints.txt pip hatchling hatch-fancy-pypi-readme
COPY pyproject.toml README.md LICENSE ./
COPY config config
COPY deploy deploy
COPY scoring scoring
COPY leaderboard leaderboard
COPY worker worker
RUN /opt/neuco/bin/pip install --constraint constraints.txt --no-build-isolation '.[postgres]'

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git openssh-client tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --home-dir /home/neuco --create-home --shell /usr/sbin/nologin neuco
COPY --from=build /opt/neuco /opt/neuco
ENV PATH=/opt/neuco/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/var/cache/neuco \
    MALLOC_ARENA_MAX=1
RUN install -d -o neuco -g neuco /var/cache/neuco /challenge
USER 10001
# The kernels are compiled here, for the first start. Another type of processor compiles them again, so the folder is a volume.
RUN neuco-worker compile
WORKDIR /challenge
VOLUME ["/challenge", "/var/cache/neuco"]
# The answer of `/healthz`, for which challenge.yaml needs healthz: 127.0.0.1:9464; the main loop cannot hang unnoticed.
HEALTHCHECK --interval=60s --timeout=20s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 9464, timeout=10); c.request('GET', '/healthz'); exit(c.getresponse().status != 200)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "neuco-worker"]
CMD ["run", "--config", "/challenge/challenge.yaml"]
