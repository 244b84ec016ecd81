<?php

return [
    'default' => 'sqlite',
    'migrations' => 'migrations',
    'connections' => [
        'sqlite' => ['driver' => 'sqlite', 'database' => database_path('database.sqlite'), 'prefix' => ''],
    ],
];
