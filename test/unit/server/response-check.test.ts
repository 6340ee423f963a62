import { expect, test } from 'vitest';
import type { RequestState } from '../../../src/server/request-state.ts';
import { createResponseCheck, type ResponseCheckMode } from '../../../src/server/validation-issues.ts';
import { compile, keptLog, toyOperations } from './toy-server.ts';

const state = {
  id: 'request-1',
  route: { operation: toyOperations[0], params: {} },
} as unknown as RequestState;
const validators = { listToys: { 200: compile({ properties: { toys: { items: { type: 'string' } } } }) } };
const wrong = { toys: ['bear', 7] };
const place = { operation: 'listToys', status: 200, pointer: '/toys/1', message: 'must be a string' };

/** Which of 250 equally invalid responses are detected, and what is reported. */
function judge(mode: ResponseCheckMode) {
  const log = keptLog();
  const check = createResponseCheck({ mode, validators, log });
  const found: number[] = [];
  let reported: unknown;
  for (let answer = 1; answer <= 250; answer += 1) {
    try {
      check(state, 200, wrong);
    } catch (error) {
      found.push(answer);
      reported = (error as { data: unknown }).data;
    }
  }
  return { found, reported, logged: log.lines[0]?.fields };
}

test('always: every response is checked, and the caller gets the position', () => {
  const { found, reported, logged } = judge('always');
  expect(found).toHaveLength(250);
  expect(reported).toEqual({ request_id: 'request-1', ...place });
  expect(logged).toEqual({ request_id: 'request-1', ...place });
});

test('sampled: one in a hundred is checked, and only the log contains the position', () => {
  const { found, reported, logged } = judge('sampled');
  expect(found).toEqual([1, 101, 201]);
  expect(reported).toEqual({ request_id: 'request-1' });
  expect(logged).toEqual({ request_id: 'request-1', ...place });
});

test('off: nothing is checked', () => {
  expect(judge('off')).toEqual({ found: [], reported: undefined, logged: undefined });
});

test('a valid response passes', () => {
  const check = createResponseCheck({ mode: 'always', validators, log: keptLog() });
  expect(check(state, 200, { toys: ['bear'] })).toBeUndefined();
});
