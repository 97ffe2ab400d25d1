#!/bin/sh
# Ask the validation server whether a submission has the right form. Exit code: 0 when it answered (valid
# or not), 2 when asked wrongly, 1 when there was no answer. The server is at VALIDATION_URL
# (http://localhost:5000 if unset), or behind the Unix socket VALIDATION_SOCKET where localhost is shared.
set -u

if [ "$#" -ne 1 ]; then
    echo "usage: validate_submission.sh FILE" >&2
    exit 2
fi
if [ ! -f "$1" ]; then
    echo "validate_submission.sh: there is no file $1" >&2
    exit 2
fi
url="${VALIDATION_URL:-http://localhost:5000}/validate"

# curl takes ';' and ',' in a file name for options of its own, so it reads the file from its input.
if command -v curl > /dev/null 2>&1; then
    if [ -n "${VALIDATION_SOCKET:-}" ]; then
        set -- "$1" --unix-socket "$VALIDATION_SOCKET"
    fi
    file="$1"
    shift
    if ! answer=$(curl --silent --show-error --max-time 900 --noproxy '*' "$@" \
        --form "file=@-;filename=submission.csv;type=text/csv" "$url" < "$file"); then
        echo "validate_submission.sh: the validation server did not answer" >&2
        exit 1
    fi
    printf '%s\n' "$answer"
    exit 0
fi

python=$(command -v python3 || command -v python) || {
    echo "validate_submission.sh: neither curl nor python is installed" >&2
    exit 1
}
exec "$python" - "$1" "$url" << 'PROGRAM'
import http.client, os, socket, sys, urllib.parse

path, url = sys.argv[1:]
target = urllib.parse.urlsplit(url)
client = http.client.HTTPConnection(target.hostname, target.port or 80, timeout=900)
try:
    if os.environ.get("VALIDATION_SOCKET"):
        client.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.sock.settimeout(900)
        client.sock.connect(os.environ["VALIDATION_SOCKET"])
    mark = "------------------------" + os.urandom(12).hex()
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="submission.csv"\r\n'
        "Content-Type: text/csv\r\n\r\n"
    ).encode()
    tail = f"\r\n--{mark}--\r\n".encode()
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        client.putrequest("POST", target.path)
        client.putheader("Content-Type", f"multipart/form-data; boundary={mark}")
        client.putheader("Content-Length", str(len(head) + size + len(tail)))
        client.endheaders()
        client.send(head)
        client.send(file)
        client.send(tail)
    print(client.getresponse().read().decode("utf-8", "replace"))
except OSError as error:
    sys.exit(f"validate_submission.sh: the validation server did not answer: {error}")
PROGRAM
