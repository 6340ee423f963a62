import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { brandedProperties, brandedValues } from '../../../src/generated/brand.ts';
import { createBrand } from '../../../src/server/brand.ts';
import { brandDocument } from '../../../src/server/reference-document.ts';
import { appHeaders, startToyServer, toyApp } from './toy-server.ts';

const acme = createBrand('acme')!;

test('the neutral word is not a brand and maps nothing', () => {
  expect(createBrand('service')).toBeUndefined();
});

test.each(['', 'Acme', 'ac-me', 'ac_me', '4cme', 'ac me'])('`%s` is not a valid prefix', (prefix) => {
  expect(() => createBrand(prefix)).toThrow('the prefix must be a lower-case word of letters and digits');
});

test('branded headers are read, neutral ones are dropped', () => {
  const headers = {
    'acme-app-id': 'a',
    'acme-authorization-signature': 's',
    'service-request-expiry': '1',
    authorization: 'Basic x',
    acme: 'y',
  };
  expect(acme.readHeaders(headers)).toEqual({
    'service-app-id': 'a',
    'service-authorization-signature': 's',
    authorization: 'Basic x',
    acme: 'y',
  });
});

const neutral = {
  service_access_token: 'token of did:service:cabc',
  recovery_method: 'service-v2',
  display_name: 'service',
  id: 'did:service:cabc',
  user_ids: ['did:service:cabc', 'did:web:example'],
  linked_accounts: [{ type: 'wallet', wallet_client_type: 'service' }],
  code: 'missing_or_invalid_service_app_id',
  custom_metadata: { service_access_token: 'service', id: 'did:service:cabc' },
  typed_data: { message: { id: 'did:service:cabc' } },
  count: 1,
  nothing: null,
};
const branded = {
  acme_access_token: 'token of did:service:cabc',
  recovery_method: 'acme-v2',
  display_name: 'service',
  id: 'did:acme:cabc',
  user_ids: ['did:acme:cabc', 'did:web:example'],
  linked_accounts: [{ type: 'wallet', wallet_client_type: 'acme' }],
  code: 'missing_or_invalid_acme_app_id',
  // Free content, which the caller may have signed, is unchanged.
  custom_metadata: { service_access_token: 'service', id: 'did:service:cabc' },
  typed_data: { message: { id: 'did:service:cabc' } },
  count: 1,
  nothing: null,
};

test('property names, literals and DIDs are branded and translated back', () => {
  expect(acme.writeBody(neutral)).toEqual(branded);
  expect(acme.readBody(branded)).toEqual(neutral);
});

test('translation is reversible', () => {
  const name = fc.constantFrom(
    ...brandedProperties,
    ...Object.keys(brandedValues),
    'id',
    'user_id',
    'name',
    '__proto__',
  );
  const text = fc.constantFrom(
    ...Object.values(brandedValues).flat(),
    'did:service:c1',
    'did:web:x',
    'service',
    '',
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.integer(),
      fc.array(tie('any')),
      fc.dictionary(name, tie('any')),
    ),
  })).any;
  fc.assert(
    fc.property(value, (body) => {
      expect(acme.readBody(acme.writeBody(body))).toEqual(body);
    }),
  );
});

test('texts for people contain branded headers, properties, DIDs and codes', () => {
  expect(
    acme.writeText(
      '`service-app-id`, /service_access_token, did:service:cabc, missing_or_invalid_service_app_id; Service unavailable, the service',
    ),
  ).toBe(
    '`acme-app-id`, /acme_access_token, did:acme:cabc, missing_or_invalid_acme_app_id; Service unavailable, the service',
  );
});

describe('the document of a brand', () => {
  const document = JSON.parse(readFileSync('openapi/openapi.json', 'utf8'));
  const text = JSON.stringify(brandDocument(document, acme));
  const words = (word: string): number =>
    text.match(
      new RegExp(
        `did:${word}:|\\b${word}-(app-id|authorization-signature|request-expiry|idempotency-key)\\b|\\b${word}_access_token\\b|_${word}_app_id\\b`,
        'g',
      ),
    )?.length ?? 0;

  test('the document of a brand contains the brand instead of the neutral word', () => {
    expect(words('service')).toBe(0);
    expect(words('acme')).toBeGreaterThan(500);
  });

  test('changes nothing else', () => {
    expect(JSON.parse(text.replaceAll('acme', 'service'))).toEqual(
      JSON.parse(JSON.stringify(document).replaceAll('acme', 'service')),
    );
  });

  test('the document of a brand names the literals of the brand in schemas and examples', () => {
    const { EmbeddedWalletRecoveryMethod } = JSON.parse(text).components.schemas;
    expect(EmbeddedWalletRecoveryMethod.enum).toContain('acme-v2');
    expect(EmbeddedWalletRecoveryMethod.enum).not.toContain('service-v2');
  });
});

describe('through the pipeline', () => {
  const headers = { authorization: appHeaders.authorization, 'acme-app-id': toyApp.id };

  test('parameters, bodies and responses are translated', async () => {
    await using server = await startToyServer({ brand: acme });
    const answer = await server.fetch('POST', '/v1/toys/did%3Aacme%3Acabc/play?user_id=did:acme:c2', {
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"acme_access_token":"x","user_id":"did:acme:c3"}',
    });
    // The toy shop echoes the request; path and query are unknown properties there, so only known property names are
    // branded.
    expect(answer.body).toEqual({
      operation: 'playWithToy',
      path: { toy_id: 'did:service:cabc' },
      query: { user_id: 'did:acme:c2' },
      body: { acme_access_token: 'x', user_id: 'did:acme:c3' },
      app: { id: toyApp.id },
    });
  });

  test('signatures cover the branded request', async () => {
    await using server = await startToyServer({
      brand: acme,
      run: async (exchange) => ({
        status: 200,
        text: new TextDecoder().decode(exchange.proof!.canonicalPayloads()[0]),
      }),
    });
    const { body } = await server.fetch('POST', '/v1/toys/bear/play', {
      headers: { ...headers, 'acme-request-expiry': '99999999999999', 'content-type': 'application/json' },
      body: '{"acme_access_token":"x","user_id":"did:acme:c3"}',
    });
    expect(body).toEqual({
      body: { acme_access_token: 'x', user_id: 'did:acme:c3' },
      headers: { 'acme-app-id': toyApp.id, 'acme-request-expiry': '99999999999999' },
      method: 'POST',
      url: `${server.url}/v1/toys/bear/play`,
      version: 1,
    });
  });

  test('refusals have branded codes', async () => {
    await using server = await startToyServer({ brand: acme });
    const { status, body } = await server.fetch('GET', '/v1/toys', { headers: appHeaders });
    expect({ status, body }).toEqual({
      status: 400,
      body: { error: 'Missing or invalid app ID.', code: 'missing_or_invalid_acme_app_id' },
    });
  });
});
