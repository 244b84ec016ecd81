<?php

namespace ContentPlatform\Laravel;

/** Announces what these methods change, also without model events. docs/guides/laravel.md names the other writes. */
class AnnouncingQuery extends \Illuminate\Database\Query\Builder
{
    public ?string $platformModel = null; // null in subqueries, which only read
    public string $platformKey = 'id';

    public function insert(array $values)
    {
        return (bool) $this->returningIds(fn () => parent::insert($values), 'created');
    }

    public function insertOrIgnore(array $values)
    {
        return $this->returningIds(fn () => parent::insertOrIgnore($values), 'created');
    }

    public function insertGetId(array $values, $sequence = null)
    {
        return tap(parent::insertGetId($values, $sequence), fn ($id) => $this->announce([$id], 'created'));
    }

    public function upsert(array $values, $uniqueBy, $update = null)
    {
        $write = fn () => parent::upsert($values, $uniqueBy, $update);

        return $update === [] ? $write() : $this->returningIds($write); // for [], the parent calls insert()
    }

    public function update(array $values)
    {
        $moves = array_key_exists($this->platformKey, $values);
        $former = $moves ? (clone $this)->useWritePdo()->pluck($this->platformKey)->all() : []; // a replica may lag

        return $this->returningIds(fn () => parent::update($values), 'updated', $former);
    }

    public function delete($id = null)
    {
        return $this->returningIds(fn () => parent::delete($id), 'deleted');
    }

    /** Adds RETURNING to the statement of $write, so that exactly the changed records are announced. */
    private function returningIds(callable $write, ?string $change = null, array $former = [])
    {
        $connection = $this->connection;
        $this->connection = $proxy = new class($connection, $this->grammar->wrap($this->platformKey)) {
            public array $ids = [];

            public function __construct(private object $connection, private string $key) {}

            public function __call($method, $arguments)
            {
                if (! in_array($method, ['insert', 'update', 'delete', 'affectingStatement'], true)) {
                    return $this->connection->$method(...$arguments);
                }
                $this->connection->recordsHaveBeenModified();
                $rows = $this->connection->select("$arguments[0] returning {$this->key} as id", $arguments[1], false);

                return count($this->ids = array_column($rows, 'id'));
            }
        };
        try {
            $count = $write();
        } finally {
            $this->connection = $connection;
        }
        $this->announce($count > 0 ? [...$former, ...$proxy->ids] : [], $change);

        return $count;
    }

    private function announce(array $ids, ?string $change): void
    {
        if ($this->platformModel !== null && $ids !== []) {
            app(Announcer::class)->changed($this->connection, $this->platformModel, array_fill_keys($ids, $change));
        }
    }
}
