<?php

namespace ContentPlatform\Laravel;

use RdKafka\{Conf, Producer};

/** Announces by Kafka event, with the PHP extension rdkafka. */
class Kafka
{
    /** Sends an event for each record. @throws PlatformError unless the brokers confirm every event */
    public function send(AnnounceChange $job): void
    {
        [$failure, $confirmed] = [null, 0];
        $producer = $this->producer(function ($kafka, $message) use (&$failure, &$confirmed) {
            $message->err === RD_KAFKA_RESP_ERR_NO_ERROR ? $confirmed++ : $failure = rd_kafka_err2str($message->err);
        });
        $topic = $producer->newTopic('cache-invalidation');
        $toEvent = fn ($id, $change) => ['model' => $job->model, 'id' => $id, 'change' => $change];
        $events = array_map($toEvent, array_keys($job->changes), $job->changes) ?: [['pattern' => "{$job->model}:*"]];
        foreach ($events as $event) {
            $key = $event['pattern'] ?? "{$event['model']}:{$event['id']}";
            $event += ['event_id' => $job->eventId, 'occurred_at' => $job->changedAt];
            $topic->producev(RD_KAFKA_PARTITION_UA, 0, json_encode(array_filter($event)), $key); // no null change
        }
        $producer->flush(10_000);
        throw_if($confirmed < count($events), PlatformError::class, 'Kafka did not confirm every event. '.$failure);
    }

    public function producer(callable $onReport): Producer
    {
        throw_unless(class_exists(Producer::class), PlatformError::class, 'The PHP extension rdkafka is not installed.');
        $conf = new Conf;
        $conf->setDrMsgCb($onReport);
        foreach (array_filter(config('platform.kafka')) as $option => $value) {
            $conf->set($option, (string) $value);
        }

        return new Producer($conf);
    }
}
