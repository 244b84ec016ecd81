<?php

namespace ContentPlatform\Laravel;

/** For an Eloquent model on a table of the platform: each committed change is announced. */
trait AnnouncesChanges
{
    /** Announces records that were changed without Eloquent, for example by SQL. */
    public static function announce(int ...$ids): void
    {
        $model = new static;
        app(Announcer::class)->changed($model->getConnection(), $model->platformModel(), array_fill_keys($ids, null));
    }

    /** Announces all records of the model. */
    public static function announceAll(): void
    {
        $model = new static;
        app(Announcer::class)->changed($model->getConnection(), $model->platformModel(), null);
    }

    /** Name of the model on the platform: $platformModel, or the name of the class in lower case. */
    public function platformModel(): string
    {
        return property_exists($this, 'platformModel') ? $this->platformModel : strtolower(class_basename($this));
    }

    /** Sets a part of a body, for example "body->title". Laravel would read it as arrays, and so write {} as []. */
    public function fillJsonAttribute($key, $value)
    {
        [$column, $path] = explode('->', $key, 2);
        if (($this->getCasts()[$column] ?? null) !== JsonBody::class) {
            return parent::fillJsonAttribute($key, $value);
        }
        throw_if($this->exists && ! array_key_exists($column, $this->attributes), 'LogicException', "Load $column first.");
        $body = $this->$column ?? (object) [];

        return $this->setAttribute($column, data_set($body, explode('->', $path), $value));
    }

    protected function newBaseQueryBuilder()
    {
        $connection = $this->getConnection();
        $query = new AnnouncingQuery($connection, $connection->getQueryGrammar(), $connection->getPostProcessor());
        [$query->platformModel, $query->platformKey] = [$this->platformModel(), $this->getKeyName()];

        return $query;
    }
}
