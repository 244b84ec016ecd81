<?php

use ContentPlatform\Laravel\AnnounceChange;
use Illuminate\Queue\Events\JobFailed;
use Illuminate\Support\{Carbon, Facades\DB, Facades\Event};

// As the command queue:work does.
Event::listen(JobFailed::class, fn ($event) => app('queue.failer')
    ->log($event->connectionName, $event->job->getQueue(), $event->job->getRawBody(), $event->exception));

/** A model of an application, with Laravel's defaults. */
class Form extends Illuminate\Database\Eloquent\Model
{
    use ContentPlatform\Laravel\AnnouncesChanges;

    protected $connection = 'platform';
    protected $table = 'content.webform';
    protected $platformModel = 'webform';
    protected $guarded = [];
    public $timestamps = false;
}

/** A job of an application that carries a record. */
class RenameJob implements Illuminate\Contracts\Queue\ShouldQueue
{
    use Illuminate\Bus\Queueable, Illuminate\Queue\SerializesModels;

    public function __construct(public $record, public string $title)
    {
    }

    public function handle()
    {
        $this->record->update(['title' => $this->title]);
    }
}

/**
 * Runs the jobs that are due on the queue and returns their number. Stops the clock while they run, so that a job that is
 * released for a second does not become due again.
 */
function work(string $queue = 'platform'): int
{
    $due = fn () => DB::table('jobs')->where('queue', $queue)->where('available_at', '<=', now()->getTimestamp())->exists();
    $clock = Carbon::getTestNow();
    Carbon::setTestNow($clock ?? now());
    try {
        for ($count = 0; $due(); $count++) {
            app('queue.worker')->runNextJob('database', $queue, new Illuminate\Queue\WorkerOptions);
        }
    } finally {
        Carbon::setTestNow($clock);
    }

    return $count;
}

/** Returns the announcements in the queue, oldest first. */
function announced(): array
{
    return array_map(fn ($job) => ['model' => $job->model, 'changes' => (object) $job->changes], queued());
}

/** @return AnnounceChange[] */
function queued(): array
{
    $payloads = DB::table('jobs')->where('queue', 'platform')->orderBy('id')->pluck('payload')->all();

    return array_map(fn ($payload) => unserialize(json_decode($payload)->data->command), $payloads);
}
