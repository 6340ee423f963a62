import { expect, test } from 'vitest';
import { compareAnswers } from '../../../src/tools/verify/comparison.ts';

const differences = (target: object, sandbox: object, status = 200) =>
  compareAnswers('getWallet 200', { status, body: target }, { status, body: sandbox }).map(
    ({ message }) => message,
  );

test('answers with other ids and times have the same shape', () => {
  expect(differences({ id: 'a', at: 1, tags: ['x'] }, { id: 'b', at: 2, tags: ['y', 'z'] })).toEqual([]);
  expect(differences({ owner_id: null }, { owner_id: 'b' })).toEqual([]);
  expect(differences({ entity: null, list: [] }, { entity: { id: 1 }, list: [{ id: 1 }] })).toEqual([]);
});

test('what is absent, or has another type, is a difference', () => {
  expect(differences({ id: 'a' }, { id: 1, more: true })).toEqual([
    '/id is string, in the sandbox number',
    '/more is absent, in the sandbox boolean',
  ]);
  expect(differences({}, { entity: { id: 1 } })).toEqual(['/entity is absent, in the sandbox object']);
  expect(differences({ list: [{ a: 1 }] }, { list: [{ b: 1 }] })).toEqual([
    '/list/-/a is number, in the sandbox absent',
    '/list/-/b is absent, in the sandbox number',
  ]);
});

test('another status or code is the only difference that is reported', () => {
  const [status] = compareAnswers('x', { status: 200, body: {} }, { status: 404, body: { error: 'no' } });
  expect(status).toMatchObject({ rule: 'sandbox-differs', message: 'the status is 200, in the sandbox 404' });
  expect(differences({ code: 'a', error: '' }, { code: 'b', other: '' }, 400)).toEqual([
    'the code is `a`, in the sandbox `b`',
  ]);
  // A sandbox adds hints to refusals.
  expect(differences({ code: 'a', error: '' }, { code: 'a', error: '', data: { hint: 'x' } }, 400)).toEqual(
    [],
  );
});
