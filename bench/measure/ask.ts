import { Agent, request } from 'undici';
import type { OperationId } from '../../src/generated/operations.ts';
import { responseValidators } from '../../src/generated/response-validators.js';
import type { ValidateFunction } from '../../src/generated/validate-function.ts';
import type { Address } from '../servers/launch.ts';
import type { LoadRequest } from './load-order.ts';

const agents = new Map<string, Agent>();

function agentFor({ origin, caPem }: Address): Agent {
  const key = origin.startsWith('https:') ? (caPem ?? '') : '';
  const known = agents.get(key);
  if (known !== undefined) return known;
  const agent = new Agent(key === '' ? {} : { connect: { ca: key } });
  agents.set(key, agent);
  return agent;
}

/** Sends one request and returns the parsed body. Throws for any status other than the expected one. */
export async function ask<Body>(
  address: Address,
  { method, path, headers, body, status }: LoadRequest,
): Promise<Body> {
  const answer = await request(address.origin + path, {
    method: method as 'GET',
    headers,
    body: body ?? null,
    dispatcher: agentFor(address),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== status) {
    throw new Error(`${method} ${path} at ${address.origin}: ${answer.statusCode} ${text.slice(0, 500)}`);
  }
  return JSON.parse(text) as Body;
}

/** Throws unless a server answers a request according to the contract. Called before measuring it. */
export async function requireContract(
  address: Address,
  id: OperationId,
  request: LoadRequest,
): Promise<void> {
  const body = await ask<unknown>(address, request);
  const validate: ValidateFunction | undefined = responseValidators[id]['200'];
  if (validate?.(body) === true) return;
  const fault = validate?.errors?.[0];
  throw new Error(`${id} at ${address.origin} breaks the contract: ${fault?.instancePath} ${fault?.message}`);
}

/** Closes the connections of `ask`. */
export async function hangUp(): Promise<void> {
  await Promise.all([...agents.values()].map((agent) => agent.destroy()));
  agents.clear();
}
