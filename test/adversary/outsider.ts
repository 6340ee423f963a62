import { connect as connectPlainly } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:tls';
import { Agent } from 'undici';
import type { Random } from '../simulation/random.ts';
import { deckOf, inLanes } from './attack.ts';
import { type HttpCase, outsiderCases, type RawCase, rawCases } from './cases.ts';
import { fill, type Ids, sendCase } from './http-cases.ts';
import { mutateBytes } from './mutate.ts';
import type { Notes } from './observe.ts';
import type { World } from './world.ts';

/** Linux has a network of loopback addresses, so that limits of an address do not meet the honest client. */
export const attackersAddress = process.platform === 'linux' ? { localAddress: '127.0.0.2' } : {};

const LANES = 3;
const PAUSE_MS = 15;
const RAW_MS = 2_000;

/** Attacks with nothing but what is public. */
export async function outsider(
  world: World,
  { ids, notes, random, signal }: { ids: Ids; notes: Notes; random: Random; signal: AbortSignal },
): Promise<void> {
  const agent = new Agent({ connect: { rejectUnauthorized: false, ...attackersAddress }, connections: 16 });
  const [requests, streams] = [deckOf(outsiderCases, random), deckOf(rawCases, random)];

  async function request(each: HttpCase): Promise<void> {
    const answers = await sendCase(each, {
      agent,
      origin: world.origin,
      random,
      ids,
      headers: { 'service-app-id': ids.app },
    });
    for (const { status, text, sent } of answers) {
      if (status >= 500 && status !== 503)
        notes.fault('an internal error', `outsider, ${each.subject}: ${status} ${text} for ${sent}`);
      // A changed path may lead to what is public.
      else if (status >= 200 && status < 300 && each.isPublic !== true && sent.startsWith('as it is'))
        notes.fault('an answer without a secret', `${each.subject}: ${status} ${text}`);
      notMarked(each.subject, text);
    }
  }
  function notMarked(subject: string, text: string): void {
    const mark = ids.marks.find((each) => text.includes(each));
    if (mark !== undefined) notes.fault('an answer without a secret', `${subject}: ${mark} in ${text}`);
  }

  await inLanes(LANES, { signal, pauseMs: PAUSE_MS }, async () => {
    if (random.chance(0.6)) {
      const { value } = requests.next();
      notes.attack('outsider', value.subject);
      return request(value);
    }
    const { value } = streams.next();
    notes.attack('outsider', value.subject);
    const { status, text } = await sendRaw(value, world.origin, random, ids);
    if (status >= 500 && status !== 503 && status !== 501 && status !== 505)
      notes.fault('an internal error', `outsider, ${value.subject}: ${text.slice(0, 300)}`);
    notMarked(value.subject, text);
  });
  await agent.destroy();
}

/** Resolves with the beginning of the answer when the connection has ended, or when it took long enough. */
async function sendRaw(
  { pieces, pauseMs = 0, isUnread = false, isPlain = false }: RawCase,
  origin: string,
  random: Random,
  ids: Ids,
): Promise<{ status: number; text: string }> {
  const { port } = new URL(origin);
  const place = { port: Number(port), host: '127.0.0.1', ...attackersAddress };
  const socket = isPlain ? connectPlainly(place) : connect({ ...place, rejectUnauthorized: false });
  let text = '';
  if (!isUnread)
    socket.on('data', (chunk: Buffer) => {
      if (text.length < 4_096) text += chunk.toString('latin1');
    });
  socket.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const isChanged = random.chance(0.3);
  const write = async (): Promise<void> => {
    for (const piece of pieces) {
      if (socket.destroyed) return;
      const bytes = Buffer.from(fill(piece, ids), 'latin1');
      socket.write(isChanged ? mutateBytes(bytes, random) : bytes);
      if (pauseMs > 0) await pause(pauseMs);
    }
  };
  await Promise.race([ended, write().then(() => pause(Math.min(RAW_MS, 200 + pieces.length * 50)))]);
  socket.destroy();
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), text };
}
