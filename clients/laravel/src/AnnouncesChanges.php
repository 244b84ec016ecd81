<?php

namespace ContentPlatform\Laravel;

/** For an Eloquent model on a table of the platform: each committed change is announced. */
trait AnnouncesChanges
{
    /** Announces records that were changed without Eloquent, for example by SQL. */
    public static function announce(int ...$ids): void
    {
        (new static)->announceChanges(array_fill_keys($ids, null));
    }

    /** Announces all records of the model. */
    public static function announceAll(): void
    {
        (new static)->announceChanges(null);
    }

    /** Name of the model on the platform: $platformModel, or the name of the class in lower case. */
    public function platformModel(): string
    {
        return $this->platformModel ?? strtolower(class_basename($this));
    }

    protected function newBaseQueryBuilder()
    {
        $connection = $this->getConnection();
        $query = new AnnouncingQuery($connection, $connection->getQueryGrammar(), $connection->getPostProcessor());
        [$query->platformModel, $query->platformKey] = [$this->platformModel(), $this->getKeyName()];

        return $query;
    }

    private function announceChanges(?array $changes): void
    {
        app(Announcer::class)->changed($this->getConnection(), $this->platformModel(), $changes);
    }
}
