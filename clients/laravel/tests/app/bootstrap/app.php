<?php

// Debian's Laravel and Guzzle, in /usr/share/php.
require_once 'Illuminate/autoload.php';
require_once 'GuzzleHttp/autoload.php';
if (getenv('TEST_RDKAFKA')) {
    require_once dirname(__DIR__).'/rdkafka.php';
}

$app = new Illuminate\Foundation\Application(dirname(__DIR__));
$app->singleton(Illuminate\Contracts\Console\Kernel::class, App\Console\Kernel::class);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);

return $app;
