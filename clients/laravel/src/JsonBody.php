<?php

namespace ContentPlatform\Laravel;

use Illuminate\Contracts\Database\Eloquent\CastsAttributes;

/** Casts a JSON column to objects, so that {} does not become [] and 1.0 does not become 1. */
class JsonBody implements CastsAttributes
{
    private const FLAGS = JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION | JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES;

    public function get($model, $key, $value, $attributes)
    {
        return $value === null ? null : json_decode($value, false, 512, JSON_THROW_ON_ERROR);
    }

    /** Returns the stored text if the value is the same, so that reading a body does not change it. */
    public function set($model, $key, $value, $attributes)
    {
        $text = json_encode($value, self::FLAGS);
        $stored = $this->get($model, $key, $attributes[$key] ?? null, []);

        return $stored !== null && json_encode($stored, self::FLAGS) === $text ? $attributes[$key] : $text;
    }
}
