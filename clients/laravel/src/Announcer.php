<?php

namespace ContentPlatform\Laravel;

use Illuminate\Database\ConnectionInterface;
use Illuminate\Support\Facades\{Bus, DB};

/**
 * Collects changes and queues their announcements once they are committed.
 *
 * Laravel's afterCommit() waits for the transaction that was opened last, on any connection. This class waits for that of
 * the change, and for one that covers the jobs table: its rollback would delete the job of a committed change.
 */
class Announcer
{
    private const IDS_PER_JOB = 1000;

    /** @var array[] connection, level (open transactions), model, changes */
    private array $pending = [];

    /** @param ?array<int, ?string> $changes as in AnnounceChange; null: all records of the model */
    public function changed(ConnectionInterface $connection, string $model, ?array $changes): void
    {
        $level = $connection->transactionLevel();
        $this->pending[] = ['connection' => $connection->getName()] + compact('level', 'model', 'changes');
        $this->committed((object) compact('connection'));
    }

    public function committed(object $event): void
    {
        $level = $event->connection->transactionLevel();
        foreach (array_keys(array_column($this->pending, 'connection'), $event->connection->getName(), true) as $index) {
            $this->pending[$index]['level'] = min($this->pending[$index]['level'], $level);
        }
        $this->queueCommitted();
    }

    public function rolledBack(object $event): void
    {
        [$name, $level] = [$event->connection->getName(), $event->connection->transactionLevel()];
        $isKept = fn ($one) => $one['connection'] !== $name || $one['level'] <= $level;
        $this->pending = array_values(array_filter($this->pending, $isKept));
        $this->queueCommitted();
    }

    private function queueCommitted(): void
    {
        $queue = config('queue.connections.'.(config('platform.queue_connection') ?? config('queue.default')));
        $database = ($queue['driver'] ?? '') === 'database' ? DB::connection($queue['connection'] ?? null) : null;
        [$ready, $waiting] = collect($this->pending)->partition(fn ($one) => $one['level'] === 0);
        if ($database && $database->transactionLevel() > 0) {
            return;
        }
        [$this->pending, $error] = [$waiting->values()->all(), null];
        foreach ($ready->groupBy('model') as $model => $all) {
            $changes = $all->pluck('changes');
            $merged = array_replace([], ...$changes->filter());
            $groups = $changes->containsStrict(null) ? [[]] : array_chunk($merged, self::IDS_PER_JOB, true);
            foreach ($groups as $group) {
                try {
                    Bus::dispatch(new AnnounceChange($model, $group));
                } catch (\Throwable $error) {
                    // The next group does not depend on this one.
                }
            }
        }
        throw_if($error, $error);
    }
}
