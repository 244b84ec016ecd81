<?php

namespace ContentPlatform\Laravel;

use Illuminate\Support\Facades\{Cache, DB, Http};
use Illuminate\Support\Str;

class CheckCommand extends \Illuminate\Console\Command
{
    /** The checks in their order, with advice. handle() calls check<name>(). PHP ignores the case: URL is checkUrl(). */
    private const ADVICE = [
        'URL' => "Set PLATFORM_URL to the gateway's URL without path and slash at its end, for example https://api.example.com.",
        'Client' => 'Set PLATFORM_CLIENT and PLATFORM_SECRET. On the platform, "npm run admin -- rotate-client NAME" prints a new '
            .'secret, and "npm run admin -- create-client NAME --scope cache:clear" creates a client.',
        'Database' => 'Set PLATFORM_DATABASE_URL with the role content_server and its password.',
        'Queue' => 'Set QUEUE_CONNECTION=database or redis, or set PLATFORM_QUEUE_CONNECTION to such a connection.',
        'Worker' => 'Keep "php artisan queue:work %s --queue=%s" running, with a cache that all processes share (not the driver array). '
            .'After a change of the settings, run "php artisan queue:restart".',
        'Kafka' => 'Set KAFKA_BROKERS and start Kafka, or set PLATFORM_VIA=http.',
    ];

    protected $signature = 'platform:check {--wait=10 : Seconds to wait for a queue worker}';
    protected $description = 'Check the connection to the platform and say what to do';

    public function handle(Platform $platform, Kafka $kafka): int
    {
        $exitCode = self::SUCCESS;
        foreach (self::ADVICE as $name => $advice) {
            try {
                $this->{"check$name"}($platform, $kafka);
                $this->info("ok    $name");
            } catch (\Throwable $error) {
                $exitCode = self::FAILURE;
                $this->error("fail  $name: {$error->getMessage()}");
                $worker = [config('platform.queue_connection') ?? config('queue.default'), config('platform.queue')];
                $this->line('      '.vsprintf($advice, $worker));
            }
        }

        return $exitCode;
    }

    private function checkUrl(): void
    {
        $url = (string) config('platform.url');
        throw_if(str_ends_with($url, '/'), "PLATFORM_URL=$url ends with a slash.");
        throw_unless(preg_match('#^https?://[^/?\#]+$#', $url), "PLATFORM_URL=$url is not the URL of a gateway.");
        $response = Http::timeout(5)->withoutRedirecting()->get("$url/health");
        throw_unless(is_array($response->json('services')), "The server at $url is not the gateway (GET /health).");
    }

    private function checkClient(Platform $platform): void
    {
        $scope = $platform->newToken()['scope'];
        throw_unless(in_array('cache:clear', explode(' ', $scope), true), 'The client lacks the scope cache:clear.');
        $platform->clear('webform', 2 ** 53 - 1); // no record has this id
    }

    private function checkDatabase(): void
    {
        $may = "select bool_and(has_table_privilege(?, name)) as may from unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) as name";
        foreach (config('platform.tables') as $table) {
            throw_unless(DB::connection('platform')->selectOne($may, [$table])->may, "This role may not change $table.");
        }
    }

    private function checkQueue(): void
    {
        $name = config('platform.queue_connection') ?? config('queue.default');
        $driver = config("queue.connections.$name.driver", 'missing');
        // failover falls back to other drivers, and puts jobs into the application's own transaction.
        $unsafe = ['sync', 'null', 'missing', 'deferred', 'background', 'failover'];
        throw_if(in_array($driver, $unsafe, true), "The driver of the queue $name is $driver. It does not keep every job.");
    }

    private function checkWorker(): void
    {
        $this->checkQueue();
        $key = 'platform-check:'.Str::random();
        // The file driver deletes a key that it reads while the file is created.
        Cache::put($key, 'waiting', $this->option('wait') + 60);
        // A worker keeps the client and the secret that were set when it started.
        dispatch(static function () use ($key) {
            try {
                app(Platform::class)->newToken();
                Cache::put($key, 'done', 60);
            } catch (\Throwable $error) {
                Cache::put($key, "A worker gets no token. {$error->getMessage()}", 60);
            }
        })->onConnection(config('platform.queue_connection'))->onQueue(config('platform.queue'));
        $end = microtime(true) + $this->option('wait');
        while (in_array($state = Cache::get($key), ['waiting', null], true)) {
            throw_if(microtime(true) > $end, "No job was done within {$this->option('wait')} s.");
            usleep(50_000);
        }
        Cache::forget($key);
        throw_if($state !== 'done', $state);
    }

    private function checkKafka(Platform $platform, Kafka $kafka): void
    {
        throw_unless(in_array(config('platform.via'), ['http', 'kafka'], true), 'PLATFORM_VIA is neither http nor kafka.');
        config('platform.via') !== 'kafka' || $kafka->producer(fn () => null)->getMetadata(false, null, 5_000);
    }
}
