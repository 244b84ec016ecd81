# Health check of a container: asks the internal listener of its process, 1000 above PORT. In bash, because a check that
# starts Node takes 250 ms of CPU.
exec 3<> "/dev/tcp/127.0.0.1/$((PORT + 1000))" || exit 1
printf 'GET /health/ready HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3
read -r -t 2.5 _ status _ <&3
[ "$status" = 200 ]
