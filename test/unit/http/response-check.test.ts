import { expect, test } from 'vitest';
import type { HttpExchange } from '../../../src/http/http-exchange.ts';
import { createResponseCheck, type ResponseCheckMode } from '../../../src/http/response-check.ts';
import { compile, keptLog, toyOperations } from './toy-server.ts';

const exchange = {
  id: 'request-1',
  route: { operation: toyOperations[0], params: {} },
} as unknown as HttpExchange;
const validators = { listToys: { 200: compile({ properties: { toys: { items: { type: 'string' } } } }) } };
const wrong = { toys: ['bear', 7] };
const place = { operation: 'listToys', status: 200, pointer: '/toys/1', message: 'must be a string' };

/** Which of 250 equally wrong answers are found wrong, and what is told. */
function judge(mode: ResponseCheckMode) {
  const log = keptLog();
  const check = createResponseCheck({ mode, validators, log });
  const found: number[] = [];
  let told: unknown;
  for (let answer = 1; answer <= 250; answer += 1) {
    try {
      check(exchange, 200, wrong);
    } catch (error) {
      found.push(answer);
      told = (error as { data: unknown }).data;
    }
  }
  return { found, told, logged: log.lines[0]?.fields };
}

test('always: every answer is checked, and the caller is told the place', () => {
  const { found, told, logged } = judge('always');
  expect(found).toHaveLength(250);
  expect(told).toEqual({ request_id: 'request-1', ...place });
  expect(logged).toEqual({ request_id: 'request-1', ...place });
});

test('sampled: one in a hundred is checked, and only the log is told the place', () => {
  const { found, told, logged } = judge('sampled');
  expect(found).toEqual([1, 101, 201]);
  expect(told).toEqual({ request_id: 'request-1' });
  expect(logged).toEqual({ request_id: 'request-1', ...place });
});

test('off: nothing is checked', () => {
  expect(judge('off')).toEqual({ found: [], told: undefined, logged: undefined });
});

test('an answer that keeps the contract passes', () => {
  const check = createResponseCheck({ mode: 'always', validators, log: keptLog() });
  expect(check(exchange, 200, { toys: ['bear'] })).toBeUndefined();
});
