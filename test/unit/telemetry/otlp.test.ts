import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type EndedSpan, metricsBody, tracesBody } from '../../../src/telemetry/otlp.ts';

// Written by the official serializers from the same spans and metrics.
const official = JSON.parse(
  readFileSync(new URL('../../vectors/telemetry/otlp.json', import.meta.url), 'utf8'),
) as { trace: object; metrics: object };

const sender = { service: 'custos', version: '1.2.3', instance: 'a1' };
const second = 1_000_000_000n;
const start = 1_700_000_000n * second;

test('spans are written as by the official serializer', () => {
  const request = {
    traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
    spanId: '00f067aa0ba902b7',
    parentId: undefined,
    isParentRemote: false,
    state: undefined,
  };
  const spans: EndedSpan[] = [
    {
      ...request,
      spanId: 'b7ad6b7169203331',
      parentId: request.spanId,
      name: 'policy',
      kind: 'internal',
      startNs: start + 1_000_000n,
      endNs: start + 2_500_000n,
      attributes: { 'custos.policies': 2, 'custos.allowed': true },
      hasFailed: false,
    },
    {
      ...request,
      name: 'createWallet',
      kind: 'server',
      startNs: start,
      endNs: start + second + 5n,
      attributes: {
        'http.request.method': 'POST',
        'http.response.status_code': 500,
        'error.type': 'internal_error',
      },
      hasFailed: true,
    },
  ];
  expect(JSON.parse(JSON.stringify(tracesBody(sender, spans)))).toEqual(official.trace);
});

test('metrics are written as by the official serializer', () => {
  const body = metricsBody(
    sender,
    [
      {
        ...{ name: 'custos_http_requests_total', help: 'Requests.', type: 'counter' },
        samples: [{ labels: { operation: 'createWallet', status: '200' }, value: 3 }],
      },
      {
        ...{ name: 'custos_database_waiting', help: 'Callers.', type: 'gauge' },
        samples: [{ labels: {}, value: 0.5 }],
      },
      {
        ...{ name: 'custos_seconds', help: 'Time.', type: 'histogram', bounds: [0.1, 1] },
        distributions: [{ labels: { call: 'open' }, counts: [1, 0, 2], sum: 12.5 }],
      },
    ],
    { startNs: start, nowNs: start + 60n * second },
  );
  expect(JSON.parse(JSON.stringify(body))).toEqual(official.metrics);
});
