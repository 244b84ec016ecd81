<?php

// Boots the application, then evaluates each line of stdin, {"code": PHP}, and prints the result as a line of JSON.

require __DIR__.'/vendor/autoload.php';
$app = require __DIR__.'/bootstrap/app.php';
$app->make(Illuminate\Contracts\Console\Kernel::class)->bootstrap();
$app->instance('request', Illuminate\Http\Request::create('/'));
require __DIR__.'/helpers.php';

$uses = <<<'PHP'
use ContentPlatform\Laravel\{Accesscode, AnnounceChange, Kafka, Pathway, Platform, Webform};
use Illuminate\Support\Facades\{Bus, Cache, DB, Event, Http, Log, Queue, Route};
PHP;

while (($line = fgets(STDIN)) !== false) {
    ob_start();
    try {
        $result = ['value' => eval((str_starts_with($code = json_decode($line)->code, 'namespace') ? '' : $uses).$code)];
    } catch (Throwable $error) {
        $result = ['error' => get_class($error).': '.$error->getMessage()];
    }
    ob_end_clean();
    fwrite(STDOUT, json_encode($result, JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION)."\n");
}
