<?php

namespace ContentPlatform\Laravel;

use Illuminate\Http\Client\{ConnectionException, Response};
use Illuminate\Support\Facades\{Cache, DB, Http};

/** Calls the platform as a machine client. The methods throw PlatformError if the platform does not confirm the call. */
class Platform
{
    /** Clears up to 1,000 records from the cache; without ids, all of the model. Returns the number of deleted keys. */
    public function clear(string $model, int ...$ids): int
    {
        if (app(Announcer::class)->recorded !== null) {
            return 0; // after fake(), nothing is sent
        }

        return $ids === [] ? $this->post('/api/admin/cache/clear-pattern', ['pattern' => "$model:*"])
            : $this->post('/api/admin/cache/clear-model', ['model' => $model, 'ids' => $ids]);
    }

    /** Gets a new access token, which is valid for 15 minutes: access_token, scope. */
    public function newToken(): array
    {
        // RFC 6749 §2.3.1: both are encoded before they are joined with a colon.
        $credentials = array_map('rawurlencode', [(string) config('platform.client'), (string) config('platform.secret')]);
        $authorize = fn ($request) => $request->asForm()->withBasicAuth(...$credentials);
        $response = $this->send('/api/token', ['grant_type' => 'client_credentials'], $authorize);
        throw_unless($response->status() === 200 && is_string($response->json('access_token')), $this->error($response));

        return $response->json();
    }

    private function post(string $path, array $body): int
    {
        $key = 'platform-token:'.sha1(json_encode(config('platform'))); // other credentials have another token
        $token = fn () => Cache::remember($key, now()->addMinutes(14), fn () => $this->newToken()['access_token']);
        $send = fn () => $this->send($path, $body, fn ($request) => $request->withToken($token()));
        $response = $send();
        if ($response->status() === 401) {
            Cache::forget($key);
            $response = $send();
        }
        // A proxy's page can have status 200 as well.
        throw_unless($response->status() === 200 && $response->json('success') === true, $this->error($response, [403, 422]));

        return (int) $response->json('keys_deleted');
    }

    private function send(string $path, array $body, callable $authorize): Response
    {
        $request = Http::baseUrl(rtrim((string) config('platform.url'), '/'))->acceptJson()->timeout(15)
            ->withOptions(['allow_redirects' => false, 'connect_timeout' => 3]);
        try {
            return $authorize($request)->post($path, $body);
        } catch (ConnectionException $error) {
            throw new PlatformError("No reply to $path: {$error->getMessage()}");
        }
    }

    private function error(Response $response, array $finalStatuses = []): PlatformError
    {
        $text = $response->json('message') ?? mb_strimwidth($response->body(), 0, 200, '…');
        $error = new PlatformError("The platform returned {$response->status()} $text");
        $error->retryAfter = (int) $response->header('Retry-After');
        $error->final = in_array($response->status(), $finalStatuses, true);

        return $error;
    }

    /** For tests: puts the tables into the memory of SQLite, and records announcements. Nothing is sent, also by clear(). */
    public static function fake(): void
    {
        $connection = ['driver' => 'sqlite', 'database' => ':memory:'];
        config(['database.connections.platform' => $connection, 'platform.queue_connection' => 'sync']);
        DB::purge('platform');
        DB::connection('platform')->statement("attach ':memory:' as content");
        foreach (config('platform.tables') as $table) {
            DB::connection('platform')->statement("create table $table (id bigint not null primary key, title text not null, "
                .'body text not null check (json_valid(body)), version integer default 1, updated_at text default current_timestamp)');
        }
        app(Announcer::class)->recorded = [];
    }

    /** After fake(): the announced records, for example "webform 12"; "webform *" for all. */
    public static function announced(): array
    {
        $records = fn ($job) => array_map(fn ($id) => "{$job->model} $id", array_keys($job->changes) ?: ['*']);

        return collect(app(Announcer::class)->recorded)->flatMap($records)->all();
    }
}
