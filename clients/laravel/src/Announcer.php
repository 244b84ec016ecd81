<?php

namespace ContentPlatform\Laravel;

use Illuminate\Database\{ConnectionInterface, Events\TransactionRolledBack};
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

    /** @var array[] changes by connection, number of open transactions, and model; the id "*" means all records */
    private array $pending = [];

    /** @var ?AnnounceChange[] after Platform::fake(): the announcements, which are not sent */
    public ?array $recorded = null;

    /** @param ?array<int, ?string> $changes as in AnnounceChange; null: all records of the model */
    public function changed(ConnectionInterface $connection, string $model, ?array $changes): void
    {
        foreach ($changes ?? ['*' => null] as $id => $change) {
            $this->pending[$connection->getName()][$connection->transactionLevel()][$model][$id] = $change;
        }
        $this->queueCommitted();
    }

    /** Handles TransactionBeginning: a rollback of the new transaction must not drop changes of an earlier one. */
    public function begun(object $event): void
    {
        $this->leaveTransactions($event->connection->getName(), $event->connection->transactionLevel() - 1);
    }

    /** Handles TransactionCommitted, and TransactionRolledBack, which undoes the changes of the transaction. */
    public function ended(object $event): void
    {
        $connection = $event->connection;
        foreach (array_keys($this->pending[$connection->getName()] ?? []) as $level) {
            if ($event instanceof TransactionRolledBack && $level > $connection->transactionLevel()) {
                unset($this->pending[$connection->getName()][$level]);
            }
        }
        $this->queueCommitted();
    }

    /** Moves the changes of transactions that have ended to the outer transaction, which has this level. */
    private function leaveTransactions(string $name, int $outer): void
    {
        foreach ($this->pending[$name] ?? [] as $level => $models) {
            if ($level > $outer) {
                unset($this->pending[$name][$level]);
                $this->pending[$name][$outer] = array_replace_recursive($this->pending[$name][$outer] ?? [], $models);
            }
        }
    }

    /**
     * Queues the committed changes, then throws the queue's last error. Also runs after each request and job: Laravel
     * reports no end of a transaction whose connection was lost, or in which a callback of afterCommit() failed.
     */
    public function queueCommitted(): void
    {
        foreach (array_keys($this->pending) as $name) {
            $this->leaveTransactions($name, DB::connection($name)->transactionLevel());
        }
        $queue = config('queue.connections.'.(config('platform.queue_connection') ?? config('queue.default')));
        $database = ($queue['driver'] ?? '') === 'database' ? DB::connection($queue['connection'] ?? null) : null;
        if ($database && $database->transactionLevel() > 0) {
            return;
        }
        $error = null;
        foreach ($this->pending as $connection => $levels) {
            unset($this->pending[$connection][0]);
            foreach ($levels[0] ?? [] as $model => $changes) {
                $isAll = array_key_exists('*', $changes); // a job without ids announces all records of the model
                foreach ($isAll ? [[]] : array_chunk($changes, self::IDS_PER_JOB, true) as $group) {
                    try {
                        $job = new AnnounceChange($model, $group);
                        $this->recorded === null ? Bus::dispatch($job) : $this->recorded[] = $job;
                    } catch (\Throwable $error) {
                        // The next group does not depend on this one.
                    }
                }
            }
        }
        throw_if($error, $error);
    }
}
