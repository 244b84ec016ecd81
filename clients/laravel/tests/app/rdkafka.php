<?php

// Stands in for the PHP extension rdkafka, which is no Debian package: records messages and confirms them.

namespace RdKafka {
    class Exception extends \Exception
    {
    }

    class Conf
    {
        public array $options = [];
        public $report;

        public function set(string $name, string $value): void
        {
            $this->options[$name] = $value;
        }

        public function setDrMsgCb(callable $report): void
        {
            $this->report = $report;
        }
    }

    class Producer
    {
        /** Error code of the next delivery reports; 0: confirmed; null: no report. */
        public static ?int $outcome = 0;
        public static array $sent = [];
        public static array $options = [];

        public function __construct(private Conf $conf)
        {
            self::$options = $conf->options;
        }

        public function newTopic(string $name): ProducerTopic
        {
            return new ProducerTopic($name);
        }

        public function flush(int $timeoutMs): int
        {
            foreach (self::$sent as $message) {
                if (self::$outcome !== null) {
                    ($this->conf->report)($this, (object) ['err' => self::$outcome]);
                }
            }

            return 0;
        }

        public function getMetadata(bool $allTopics, ?object $topic, int $timeoutMs): object
        {
            $broker = $this->conf->options['metadata.broker.list'];
            if (! @stream_socket_client("tcp://$broker", $code, $text, $timeoutMs / 1000)) {
                throw new Exception('Local: Broker transport failure');
            }

            return (object) [];
        }
    }

    class ProducerTopic
    {
        public function __construct(private string $name)
        {
        }

        public function producev(int $partition, int $flags, string $value, string $key): void
        {
            Producer::$sent[] = ['topic' => $this->name, 'key' => $key, 'value' => $value];
        }
    }
}

namespace {
    const RD_KAFKA_PARTITION_UA = -1;
    const RD_KAFKA_RESP_ERR_NO_ERROR = 0;

    function rd_kafka_err2str(int $code): string
    {
        return "error $code";
    }
}
