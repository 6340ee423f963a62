import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { writeTogether } from '../../../../src/server/write-together.ts';

afterEach(() => void vi.restoreAllMocks());

/** What happens to responses, in order. */
function connections() {
  const events: string[] = [];
  const answer = (name: string, { complete = true, refusesHead = false } = {}): void => {
    const response = {
      req: { complete } as IncomingMessage,
      writeHead: () => {
        if (refusesHead) throw new TypeError('invalid character in a header');
        events.push(`head ${name}`);
      },
      end: (text: string) => void events.push(`write ${name} ${text}`),
    } as unknown as ServerResponse;
    writeTogether(response, { status: 200, headers: {} }, `text of ${name}`);
  };
  return { events, answer };
}

test('responses of one turn of the event loop are written at its end, in order', async () => {
  const { events, answer } = connections();
  answer('a');
  answer('b');
  expect(events).toEqual(['head a', 'head b']);
  await nextTurn();
  expect(events.slice(2)).toEqual(['write a text of a', 'write b text of b']);
  answer('c');
  await nextTurn();
  expect(events.slice(4)).toEqual(['head c', 'write c text of c']);
});

test('in a long turn, responses are written with the first one that is ready a millisecond later', async () => {
  const { events, answer } = connections();
  let nowMs = 100;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  answer('a');
  nowMs += 0.9;
  answer('b');
  expect(events).not.toContain('write a text of a');
  nowMs += 0.1;
  answer('c');
  const written = events.filter((event) => event.startsWith('write'));
  expect(written).toEqual(['write a text of a', 'write b text of b', 'write c text of c']);
  answer('d');
  await nextTurn();
  // Each once.
  expect(events.filter((event) => event.startsWith('write'))).toHaveLength(4);
});

test('the response to a request whose body is still arriving is written at once', () => {
  const { events, answer } = connections();
  answer('a', { complete: false });
  expect(events).toEqual(['head a', 'write a text of a']);
});

test('headers that are refused are an error of their own request', async () => {
  const { events, answer } = connections();
  answer('a');
  expect(() => answer('b', { refusesHead: true })).toThrow('invalid character');
  await nextTurn();
  expect(events).toEqual(['head a', 'write a text of a']);
});
