// Runs the service as a process: argv has the options as JSON, stdout the log, then the address and a user's token.
import { startTestService, type TestServiceOptions } from './service.ts';

const options = JSON.parse(process.argv[2]!) as TestServiceOptions;
const service = await startTestService(options);
for (const line of service.log) process.stdout.write(`${JSON.stringify(line)}\n`);
service.log.push = (...lines) => {
  for (const line of lines) process.stdout.write(`${JSON.stringify(line)}\n`);
  return 0;
};
const { url } = service;
process.stdout.write(
  `${JSON.stringify({ message: 'test service started', url, token: service.userToken() })}\n`,
);
