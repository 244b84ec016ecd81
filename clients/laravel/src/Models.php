<?php

namespace ContentPlatform\Laravel;

use Illuminate\Database\Eloquent\Model;

/** A record of the platform. Triggers of the database set version and updated_at: call refresh() to read them. */
abstract class Record extends Model
{
    use AnnouncesChanges;

    public $incrementing = false;
    public $timestamps = false;
    protected $connection = 'platform';
    protected $fillable = ['id', 'title', 'body'];
    protected $hidden = ['xid'];
    protected $casts = ['id' => 'integer', 'version' => 'integer', 'updated_at' => 'datetime', 'body' => JsonBody::class];

    public function getTable(): string
    {
        return $this->table ?? config('platform.tables')[$this->platformModel()];
    }
}

class Webform extends Record { protected $platformModel = 'webform'; }
class Pathway extends Record { protected $platformModel = 'pathway'; }
class Accesscode extends Record { protected $platformModel = 'accesscode'; }
class Condition extends Record { protected $platformModel = 'condition'; }
