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

    /** Returns the stored text if the value is the same, so that reading a body does not change it, nor does a repeated import. */
    public function set($model, $key, $value, $attributes)
    {
        [$text, $stored] = [json_encode($value, self::FLAGS), $attributes[$key] ?? null];
        $sorted = fn ($json) => $this->sorted($this->get($model, $key, $json, []));

        return $stored !== null && $sorted($stored) === $sorted($text) ? $stored : $text;
    }

    /** Sorts the keys of objects, whose order jsonb does not keep. The key "{}" distinguishes {} from []. */
    private function sorted(mixed $value): mixed
    {
        $parts = is_object($value) || is_array($value) ? array_map($this->sorted(...), (array) $value) : $value;

        return is_object($value) && ksort($parts, SORT_STRING) ? ['{}' => $parts] : $parts;
    }
}
