<?php

namespace ContentPlatform\Laravel;

use Illuminate\Database\Events\{TransactionCommitted, TransactionRolledBack};
use Illuminate\Support\ServiceProvider;

class PlatformServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__.'/../config/platform.php', 'platform');
        config(['database.connections.platform' => config('database.connections.platform', config('platform.database'))]);
        $this->app->singleton(Announcer::class);
    }

    public function boot(): void
    {
        $events = [TransactionCommitted::class, TransactionRolledBack::class];
        $this->app['events']->listen($events, [Announcer::class, 'ended']);
        $this->publishes([__DIR__.'/../config/platform.php' => $this->app->configPath('platform.php')], 'platform-config');
        $this->commands([CheckCommand::class, ClearCommand::class]);
    }
}
