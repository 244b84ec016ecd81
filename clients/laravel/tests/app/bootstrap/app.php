<?php

// Debian's Laravel and Guzzle, in /usr/share/php.
require_once 'Illuminate/autoload.php';
require_once 'GuzzleHttp/autoload.php';
if (getenv('TEST_RDKAFKA')) {
    require_once dirname(__DIR__).'/rdkafka.php';
}

$app = new class(dirname(__DIR__)) extends Illuminate\Foundation\Application
{
    public function version()
    {
        return getenv('TEST_LARAVEL_VERSION') ?: parent::version();
    }
};
$app->singleton(Illuminate\Contracts\Console\Kernel::class, App\Console\Kernel::class);
$app->singleton(Illuminate\Contracts\Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);

return $app;
