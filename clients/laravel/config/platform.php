<?php

return [
    // Base URL of the gateway, without a slash at its end, and a machine client with the scope cache:clear.
    'url' => env('PLATFORM_URL'),
    'client' => env('PLATFORM_CLIENT'),
    'secret' => env('PLATFORM_SECRET'),
    // How changes are announced: http or kafka. Connection and name of their queue; null is the default connection.
    'via' => env('PLATFORM_VIA', 'http'),
    'queue_connection' => env('PLATFORM_QUEUE_CONNECTION') ?: null,
    'queue' => env('PLATFORM_QUEUE', 'platform'),
    // The database connection "platform", unless config/database.php defines it, and the table of each model.
    'database' => ['driver' => 'pgsql', 'url' => env('PLATFORM_DATABASE_URL'), 'charset' => 'utf8'],
    'tables' => [
        'webform' => 'content.webform',
        'pathway' => 'content.pathway',
        'accesscode' => 'content.accesscode',
        'condition' => 'content.condition',
    ],
    // Options of librdkafka. Those that are null are not set.
    'kafka' => [
        'metadata.broker.list' => env('KAFKA_BROKERS'),
        'security.protocol' => env('KAFKA_SECURITY_PROTOCOL'),
        'sasl.mechanisms' => env('KAFKA_SASL_MECHANISM'),
        'sasl.username' => env('KAFKA_USERNAME'),
        'sasl.password' => env('KAFKA_PASSWORD'),
        'enable.idempotence' => 'true',
        'message.timeout.ms' => '5000',
    ],
];
