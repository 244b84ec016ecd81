<?php

namespace ContentPlatform\Laravel;

class ClearCommand extends \Illuminate\Console\Command
{
    protected $signature = 'platform:clear {model} {id? : Without an id, all records of the model}';
    protected $description = "Clear records from the platform's cache";

    public function handle(Platform $platform): void
    {
        [$model, $ids] = [$this->argument('model'), array_filter([(int) $this->argument('id')])];
        $this->info("Cleared $model ".($ids[0] ?? '*').": {$platform->clear($model, ...$ids)} keys deleted.");
    }
}
