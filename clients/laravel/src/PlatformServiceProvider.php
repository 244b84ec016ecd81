<?php

namespace ContentPlatform\Laravel;

use Illuminate\Database\Events\{TransactionBeginning, TransactionCommitted, TransactionRolledBack};
use Illuminate\Queue\Events\{JobExceptionOccurred, JobProcessed};
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
        // Resolved late: Octane gives each request an application of its own, and the dispatcher keeps the first one.
        $this->app['events']->listen($events, static fn (object $event) => app(Announcer::class)->ended($event));
        $begun = static fn (object $event) => app(Announcer::class)->begun($event);
        $this->app['events']->listen(TransactionBeginning::class, $begun);
        $queue = static fn () => app(Announcer::class)->queueCommitted();
        $this->app->terminating($queue);
        $this->app['events']->listen([JobProcessed::class, JobExceptionOccurred::class], $queue);
        $this->publishes([__DIR__.'/../config/platform.php' => $this->app->configPath('platform.php')], 'platform-config');
        $this->commands([CheckCommand::class, ClearCommand::class]);
    }
}
