#!/bin/bash
# Creates the users of Kafka and their rights. In Compose it runs in the network of the broker, whose listener on 127.0.0.1
# needs no login. On Kubernetes, kafka-users.yaml sets BROKER, and ADMIN_CONFIG with the login of an administrator.
set -euo pipefail
export PATH="/opt/kafka/bin:$PATH" KAFKA_HEAP_OPTS=-Xmx96m LOG_DIR=/tmp
broker=(--bootstrap-server "${BROKER:-127.0.0.1:9094}")
[ -z "${ADMIN_CONFIG:-}" ] || broker+=(--command-config "$ADMIN_CONFIG")

for user in content-cache content-server; do
  # In a file, because a command line is visible to other processes.
  printf 'SCRAM-SHA-512=password=%s\n' "$(< "/run/secrets/$user-password")" > "/tmp/$user"
  kafka-configs.sh "${broker[@]}" --alter --entity-type users --entity-name "$user" --add-config-file "/tmp/$user"
done
acl=(kafka-acls.sh "${broker[@]}" --add)
# content-cache creates the topic if it is missing. Read includes Describe.
"${acl[@]}" --allow-principal User:content-cache --operation Read --operation Create --topic cache-invalidation
"${acl[@]}" --allow-principal User:content-cache --operation Read --group content-cache
"${acl[@]}" --allow-principal User:content-server --operation Write --topic cache-invalidation
