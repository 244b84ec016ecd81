<?php

namespace ContentPlatform\Laravel;

/** The platform did not confirm a call. */
class PlatformError extends \RuntimeException
{
    public int $retryAfter = 0; // seconds that the platform asks to wait
    public bool $final = false; // whether a retry cannot help
}
