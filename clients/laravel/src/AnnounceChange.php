<?php

namespace ContentPlatform\Laravel;

use Illuminate\Bus\Queueable;
use Illuminate\Queue\{InteractsWithQueue, Jobs\SyncJob};
use Illuminate\Support\{Facades\Log, Str};

/** Announces committed changes of up to 1,000 records of a model, or of all its records. */
class AnnounceChange implements \Illuminate\Contracts\Queue\ShouldQueue
{
    use InteractsWithQueue, Queueable;

    /** As many as fit into a day. A limit in hours would include hours without a worker. The jobs table can count to 255. */
    public $tries = 152;
    /** Seconds between tries; the last value repeats. */
    public $backoff = [1, 2, 5, 10, 30, 60, 120, 300, 600];
    public string $eventId;
    public string $changedAt;

    /** @param array<int, ?string> $changes by id: created, updated, deleted, null (unknown); empty: all of the model */
    public function __construct(public string $model, public array $changes)
    {
        [$this->eventId, $this->changedAt] = [(string) Str::uuid(), now()->toISOString()];
        $this->onConnection(config('platform.queue_connection'))->onQueue(config('platform.queue'));
        $this->beforeCommit(); // Announcer has waited; a rollback on another connection must not drop this job
    }

    public function handle(Platform $platform, Kafka $kafka)
    {
        $ids = array_keys($this->changes);
        $records = count($ids) === 1 ? "{$this->model} $ids[0]" : (count($ids) ?: 'all')." records of {$this->model}";
        try {
            config('platform.via') === 'kafka' ? $kafka->send($this) : $platform->clear($this->model, ...$ids);
        } catch (PlatformError $error) {
            throw_if($this->job === null || $this->job instanceof SyncJob, $error); // no queue keeps the announcement
            if ($error->final) {
                Log::error("The announcement of $records was refused and is in failed_jobs. {$error->getMessage()}");

                return $this->fail($error);
            }
            $longest = last($this->backoff);
            $pause = min(max($this->backoff[$this->attempts() - 1] ?? $longest, $error->retryAfter), $longest);
            Log::warning("Announcing $records failed, next try in $pause s. {$error->getMessage()}");
            $this->release($pause);
        }
    }
}
