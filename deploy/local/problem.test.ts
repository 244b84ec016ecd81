import { afterEach, expect, jest, test } from '@jest/globals';
import { Problem, printProblem } from './problem.ts';

afterEach(() => void jest.restoreAllMocks());

test('shows the end of a log without terminal control characters', () => {
  const printed: string[] = [];
  jest.spyOn(console, 'error').mockImplementation((line) => void printed.push(String(line)));
  printProblem(new Problem('It died.', ['last \x1b[2Jwords \x9b31m', 'of it']));
  expect(printed).toEqual([String.raw`  last \u001b[2Jwords \u009b31m`, '  of it', 'It died.']);
});
