<?php

namespace ContentPlatform\Laravel;

class ClearCommand extends \Illuminate\Console\Command
{
    protected $signature = 'platform:clear {model} {id? : Without an id, all records of the model}';
    protected $description = "Clear records from the platform's cache";

    public function handle(Platform $platform): void
    {
        [$model, $id] = [$this->argument('model'), $this->argument('id')];
        throw_unless($id === null || preg_match('/^[1-9]\d*$/', $id), 'InvalidArgumentException', 'The id must be a positive integer.');
        $ids = $id === null ? [] : [(int) $id];
        $this->info("Cleared $model ".($ids[0] ?? '*').": {$platform->clear($model, ...$ids)} keys deleted.");
    }
}
