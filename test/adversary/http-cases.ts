import type { Agent } from 'undici';
import type { Random } from '../simulation/random.ts';
import type { HttpCase } from './cases.ts';
import { mutate, withMemberTwice } from './mutate.ts';

/** What the places in cases stand for. */
export interface Ids {
  readonly app: string;
  readonly tenant: string;
  readonly own: string;
  readonly policy: string;
  readonly endpoint: string;
  readonly other: string;
  readonly quorum: string;
  /** Of the honest client; they stand in no request. */
  readonly marks: readonly string[];
}

export function fill(text: string, ids: Ids): string {
  return text.replaceAll(/\{(app|tenant|own|policy|endpoint|other|quorum)\}/g, (_, name: keyof Ids) =>
    String(ids[name]),
  );
}

interface CaseAnswer {
  /** 0 without an answer. */
  readonly status: number;
  readonly text: string;
  /** `as it is`, or what was changed. */
  readonly sent: string;
}

const CHANGED = 0.5;
const ANSWER_MS = 20_000;

/** Sends a case, as it is the first time and changed at random half of the times. */
export async function sendCase(
  each: HttpCase,
  {
    agent,
    origin,
    random,
    ids,
    headers,
  }: { agent: Agent; origin: string; random: Random; ids: Ids; headers: Readonly<Record<string, string>> },
): Promise<CaseAnswer[]> {
  const { method, path, times = 1 } = each;
  const isChanged = typeof each.body === 'object' && random.chance(CHANGED);
  const body = isChanged ? changed(each.body as object, random) : textOf(each.body);
  const sent = isChanged ? `${path} ${body?.slice(0, 300)}` : 'as it is';
  const send = async (): Promise<CaseAnswer> => {
    try {
      const answer = await agent.request({
        ...{ origin, method, path: fill(path, ids), headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS },
        headers: {
          ...headers,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...each.headers,
          ...(each.headers?.authorization === undefined
            ? {}
            : { authorization: fill(each.headers.authorization, ids) }),
        },
        body: body === undefined ? null : fill(body, ids),
      });
      return { status: answer.statusCode, text: await answer.body.text(), sent };
    } catch (error) {
      return { status: 0, text: String(error), sent };
    }
  };
  return Promise.all(Array.from({ length: times }, send));
}

function textOf(body: HttpCase['body']): string | undefined {
  return typeof body === 'object' ? JSON.stringify(body) : body;
}

function changed(body: object, random: Random): string {
  return random.chance(0.1) ? withMemberTwice(body) : (JSON.stringify(mutate(body, random)) ?? '');
}
