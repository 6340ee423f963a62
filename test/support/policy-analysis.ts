import type { Operations } from '../../src/sandbox/generated/operations.ts';
import type { TestSandbox } from './sandbox.ts';

type Question = 'explainPolicy' | 'replayPolicy' | 'lintPolicy' | 'getPolicyTrace';

/** Calls a policy operation of the control plane. Throws the response if it is an error. */
export async function analyzePolicies<Id extends Question>(
  sandbox: Pick<TestSandbox, 'dispatcher' | 'baseUrl'>,
  id: Id,
  asked: object | string,
): Promise<Operations[Id]['response']> {
  const { status, body } = await analysisResponse(sandbox, id, asked);
  if (status !== 200) throw new Error(`${id} answered ${status} ${JSON.stringify(body)}`);
  return body as Operations[Id]['response'];
}

/** Calls a policy operation of the control plane and returns its response, whether it is an error or not. */
export async function analysisResponse(
  { dispatcher, baseUrl }: Pick<TestSandbox, 'dispatcher' | 'baseUrl'>,
  id: Question,
  asked: object | string,
): Promise<{ status: number; body: unknown }> {
  const path = {
    explainPolicy: 'explain',
    replayPolicy: 'replay',
    lintPolicy: 'lint',
    getPolicyTrace: `traces/${asked}`,
  }[id];
  const answer = await dispatcher.request({
    origin: baseUrl,
    path: `/_sandbox/policies/${path}`,
    method: typeof asked === 'string' ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof asked === 'string' ? null : JSON.stringify(asked),
  });
  return { status: answer.statusCode, body: await answer.body.json() };
}
