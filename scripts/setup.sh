# Sourced by up, test and check: makes .venv and installs tenure in it, once per state of pyproject.toml.
#
#   setup EXTRAS     EXTRAS is "" or "dev"; what is there already is left alone, so this needs no network the second time.
#
# Speaks only when it has something to do. Defines: root (the checkout), bin (the environment's commands).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
bin="$root/.venv/bin"
unset PYTHONPATH PYTHONHOME # a user's own paths must not reach into the environment

fail() {
    echo "tenure: $*" >&2
    exit 1
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 && is_new_enough "$name"; then
            echo "$name"
            return
        fi
    done
    command -v python3 >/dev/null 2>&1 || fail "needs Python 3.11 or newer, and found none: install the package python3"
    fail "needs Python 3.11 or newer; python3 here is $(python3 -c 'import platform; print(platform.python_version())')"
}

make_environment() {
    local python
    python=$(find_python) || exit 1
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        local version
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "Python $version here has no venv: install the package python$version-venv (or python3-venv) and run this again"
    fi
    "$python" -m venv --clear "$root/.venv" || fail "could not make $root/.venv"
}

install_once() {
    local what="$root"
    [ -z "$1" ] || what="$root[$1]"
    "$bin/python" -m pip install --quiet --disable-pip-version-check --editable "$what"
}

# What an installation depends on. The folder is in it because an environment does not survive being moved or copied.
stamp_of() { echo "extras=$1 root=$root pyproject=$(cksum <"$root/pyproject.toml")"; }

is_installed() {
    local stamp="$root/.venv/tenure-installed"
    [ -f "$stamp" ] && "$bin/python" -c '' >/dev/null 2>&1 || return 1
    [ "$(cat "$stamp")" = "$(stamp_of "$1")" ] || [ "$(cat "$stamp")" = "$(stamp_of dev)" ]
}

install() {
    local stamp="$root/.venv/tenure-installed" extras="$1"
    is_installed "$extras" && return
    echo "tenure: setting up $root/.venv; this happens once and takes a minute" >&2
    if ! grep -qsF "root=$root " "$stamp" || ! "$bin/python" -m pip --version >/dev/null 2>&1; then
        make_environment
    fi
    grep -qsF "extras=dev " "$stamp" && extras=dev # what was installed for tests stays installed
    rm -f "$stamp"
    install_once "$extras" || {
        echo "tenure: installing failed; trying once more" >&2
        install_once "$extras" || fail "could not install tenure's packages into $root/.venv (see above)"
    }
    stamp_of "$extras" >"$stamp"
}

# Two terminals may start at once in a new clone: the second waits for the first.
setup() {
    (
        ! command -v flock >/dev/null 2>&1 || flock 9
        install "$1" 9<&-
    ) 9<"$root" || exit 1
}
