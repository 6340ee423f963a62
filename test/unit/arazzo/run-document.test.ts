import { expect, test } from 'vitest';
import { readArazzo } from '../../../src/tools/client/arazzo/document.ts';
import { runDocument } from '../../../src/tools/client/arazzo/run-document.ts';
import type { SandboxClient, SentRequest } from '../../../src/tools/client/sandbox-client.ts';

/** Answers `GET /_sandbox/clock` with a count that grows with each request, and 404 to everything else. */
function countingClient(sent: SentRequest[] = []): SandboxClient {
  return {
    url: () => 'https://127.0.0.1:1',
    place: () => ({
      url: 'https://127.0.0.1:1',

      appId: 'a',
      appSecret: 's',
      prefix: 'service',
    }),
    call: () => Promise.reject(new Error('not called')),
    async send(request) {
      sent.push(request);
      const isClock = request.target.startsWith('/_sandbox/clock');
      const text = JSON.stringify(isClock ? { now_ms: sent.length } : { error: 'Not found' });
      return { status: isClock ? 200 : 404, statusText: '', headers: {}, text };
    },
    close: () => undefined,
  };
}

function documentOf(workflows: string): ReturnType<typeof readArazzo> {
  const head = [
    'arazzo: 1.0.1',
    'info: { title: Trial, version: "1" }',
    'sourceDescriptions: [{ name: sandbox, url: control-plane.json, type: openapi }]',
    'workflows:',
  ];
  return readArazzo([...head, workflows].join('\n'), 'trial.yaml');
}

const done = ({ steps }: Awaited<ReturnType<typeof runDocument>>) =>
  steps.map(({ workflow, step, failures }) => `${workflow}.${step}${failures.length > 0 ? ' failed' : ''}`);

test('a circle ends', async () => {
  const document = documentOf(`
  - workflowId: a
    steps:
      - { stepId: now, operationId: getClock, onSuccess: [{ name: again, type: goto, stepId: now }] }`);
  const played = await runDocument(countingClient(), document);
  expect(played.succeeded).toBe(false);
  expect(played.steps).toHaveLength(1001);
  expect(played.steps.at(-1)).toMatchObject({ failures: ['more than 1000 steps were done'] });
});

test('retries until the criteria are satisfied, and not more often than the limit', async () => {
  const document = (limit: number) =>
    documentOf(`
  - workflowId: a
    steps:
      - stepId: third
        operationId: getClock
        successCriteria: [{ condition: $response.body#/now_ms == 3 }]
        onFailure: [{ name: again, type: retry, retryLimit: ${limit}, retryAfter: 0 }]
        outputs: { now: $response.body#/now_ms }
    outputs: { now: $steps.third.outputs.now }`);
  const enough = await runDocument(countingClient(), document(2));
  expect(enough).toMatchObject({ succeeded: true, outputs: { a: { now: 3 } } });
  expect(done(enough)).toEqual(['a.third failed', 'a.third failed', 'a.third']);
  const tooFew = await runDocument(countingClient(), document(1));
  expect(tooFew.succeeded).toBe(false);
  expect(done(tooFew)).toEqual(['a.third failed', 'a.third failed']);
});

test('goes elsewhere after a failure, with the actions of the workflow unless the step has its own', async () => {
  const document = documentOf(`
  - workflowId: a
    failureActions:
      - { name: rescue, type: goto, stepId: last, criteria: [{ condition: $statusCode == 404 }] }
    steps:
      - { stepId: first, operationId: getFault, parameters: [{ name: fault_id, in: path, value: x }] }
      - { stepId: skipped, operationId: getClock }
      - stepId: last
        operationId: getFault
        parameters: [{ name: fault_id, in: path, value: y }]
        onFailure: [{ name: rescue, type: end }]
      - { stepId: never, operationId: getClock }`);
  const sent: SentRequest[] = [];
  const played = await runDocument(countingClient(sent), document);
  expect(done(played)).toEqual(['a.first failed', 'a.last failed']);
  expect(played.succeeded).toBe(false);
  expect(sent.map(({ target }) => target)).toEqual(['/_sandbox/faults/x', '/_sandbox/faults/y']);
});

test('runs workflows after those they depend on, and as steps; a failed one stops those that need it', async () => {
  const document = documentOf(`
  - workflowId: b
    dependsOn: [a]
    inputs: { type: object, properties: { least: { type: integer, default: 2 } } }
    steps:
      - { stepId: count, workflowId: c, parameters: [{ name: least, value: $inputs.least }],
          successCriteria: [{ condition: $outputs.now >= 2 }], outputs: { now: $outputs.now } }
    outputs: { now: $steps.count.outputs.now, before: $workflows.a.outputs.now }
  - workflowId: a
    steps: [{ stepId: now, operationId: getClock, outputs: { now: $response.body#/now_ms } }]
    outputs: { now: $steps.now.outputs.now }
  - workflowId: c
    inputs: { type: object, required: [least], properties: { least: { type: integer } } }
    steps:
      - { stepId: now, operationId: getClock, successCriteria: [{ condition: $response.body#/now_ms >= $inputs.least }],
          outputs: { now: $response.body#/now_ms } }
    outputs: { now: $steps.now.outputs.now }`);
  const played = await runDocument(countingClient(), document, { workflow: 'b' });
  expect(done(played)).toEqual(['a.now', 'c.now', 'b.count']);
  expect(played).toMatchObject({ succeeded: true, outputs: { b: { now: 2, before: 1 } } });
  const failed = await runDocument(countingClient(), document, { workflow: 'b', inputs: { least: 9 } });
  expect(done(failed)).toEqual(['a.now', 'c.now failed', 'b.count failed']);
  expect(failed.succeeded).toBe(false);
});

test('sends parameters and bodies with the values of expressions', async () => {
  const document = documentOf(`
  - workflowId: a
    steps:
      - stepId: list
        operationId: listWallets
        parameters:
          - { name: limit, in: query, value: 5 }
        successCriteria: [{ condition: $statusCode == 404 }]
        outputs: { limit: $request.query.limit }
      - stepId: create
        operationPath: '{$sourceDescriptions.sandbox.url}#/paths/~1v1~1wallets/post'
        parameters: [{ name: Service-Idempotency-Key, in: header, value: 'key-{$steps.list.outputs.limit}' }]
        requestBody:
          payload: '{"chain_type": "solana", "note": "{$steps.list.outputs.limit}"}'
          replacements: [{ target: /policy_ids/0, value: $steps.list.outputs.limit }]
        successCriteria: [{ condition: '^Not ', type: regex, context: $response.body#/error }]`);
  const sent: SentRequest[] = [];
  const played = await runDocument(countingClient(sent), document);
  expect(played.succeeded, JSON.stringify(played.steps)).toBe(true);
  expect(sent.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /v1/wallets?limit=5',
    'POST /v1/wallets',
  ]);
  expect(sent[1]).toMatchObject({
    headers: { 'service-idempotency-key': 'key-5' },
    bodyText: '{"chain_type":"solana","note":"5","policy_ids":[5]}',
  });
});

test('a criterion that takes exponential time ends the run', async () => {
  const document = documentOf(`
  - workflowId: a
    steps:
      - stepId: list
        operationId: listWallets
        successCriteria: [{ condition: '^(\\w+ ?)+$', type: regex, context: $response.body#/error }]`);
  const client = {
    ...countingClient(),
    send: async () => ({
      status: 404,
      statusText: '',
      headers: {},
      text: JSON.stringify({ error: `${'a'.repeat(200)}!` }),
    }),
  };
  await expect(runDocument(client, document)).rejects.toThrow(/decided within 1000 ms/);
});
