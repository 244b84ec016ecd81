import { join } from 'node:path';
import { mavenJars } from './maven-jars.ts';

/** Apache Kafka from its published jars. */
export const kafkaJars = mavenJars('kafka', join(import.meta.dirname, 'kafka', 'pom.xml'), 'kafka_2.13');
