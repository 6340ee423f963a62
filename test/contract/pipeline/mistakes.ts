import { createPrivateKey, createSign, randomUUID } from 'node:crypto';
import canonicalize from 'canonicalize';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { operations } from '../../../src/generated/operations.ts';
import { attempt, type CallOptions, control } from '../../support/call.ts';
import type { TestSandbox } from '../../support/sandbox.ts';
import { documentedOperations, exampleInput } from '../every-operation/documented-operations.ts';

/** Sends a request with a mistake, after everything that leads to it. Returns the id of the refused request. */
export type Make = (sandbox: TestSandbox) => Promise<string>;

type OperationId = keyof typeof operations;

/** A call of an operation that is refused. */
const calling =
  (
    id: OperationId,
    input: object,
    options: CallOptions | ((sandbox: TestSandbox) => CallOptions) = {},
  ): Make =>
  async (sandbox) => {
    const { headers } = await attempt(
      sandbox,
      id,
      input,
      typeof options === 'function' ? options(sandbox) : options,
    );
    return String(headers['x-request-id']);
  };

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

/** A request that no operation describes, or whose body is not JSON. */
const sending =
  (method: 'GET' | 'POST' | 'DELETE', path: string, body?: string): Make =>
  async (sandbox) => {
    const answer = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path, method, body: body ?? null },
      headers: {
        authorization: basic(`${sandbox.appId}:${sandbox.appSecret}`),
        'service-app-id': sandbox.appId,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
    });
    await answer.body.dump();
    return String(answer.headers['x-request-id']);
  };

const alice = { wallet_id: 'ext_wal_alice' };
const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const treasury = { wallet_id: 'ext_wal_treasury' };
const rename = { display_name: 'Renamed' };
const stranger = `0x${'11'.repeat(20)}`;
const transfer = (amount: string, chain = 'base') => ({
  source: { asset: 'eth', chain, amount },
  destination: { address: stranger },
});
const hello = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } };

/** A signature by Alice over another text than the canonical payload. */
const signedBy =
  (text: (payload: object, sandbox: TestSandbox) => string, name = 'service-authorization-signature') =>
  (sandbox: TestSandbox): CallOptions => {
    const payload = {
      version: 1,
      url: `${sandbox.baseUrl}/v1/wallets/ext_wal_alice`,
      method: 'PATCH',
      headers: { 'service-app-id': sandbox.appId },
      body: rename,
    };
    const key = Buffer.from(aliceKey.privateKey, 'base64');
    const signature = createSign('sha256')
      .update(text(payload, sandbox))
      .sign(createPrivateKey({ key, format: 'der', type: 'pkcs8' }), 'base64');
    return { headers: { [name]: signature } };
  };

const created = async (sandbox: TestSandbox, body: object = { chain_type: 'ethereum' }) =>
  (await attempt(sandbox, 'createWallet', { body })).body as { id: string; address: string };

/** Archives a wallet, and then makes a mistake with it. */
const archivedAnd =
  (
    mistake: (wallet: { readonly id: string; readonly address: string; readonly externalId: string }) => Make,
  ): Make =>
  async (sandbox) => {
    const externalId = `till-${randomUUID()}`;
    const body = { chain_type: 'ethereum', display_name: 'Old till', external_id: externalId };
    const wallet = await created(sandbox, body);
    await attempt(sandbox, 'archiveWallet', { path: { wallet_id: wallet.id } });
    return mistake({ ...wallet, externalId })(sandbox);
  };

const archivedHint =
  'expected a wallet in use, got one that was archived at …, which the API treats as absent. Restore it in the inspector, with `custos call restoreWallet …` or, in a data folder, with `custos wallets restore … --data <folder>`; a read with `include_archived=true` still shows it.';

/** A new wallet with a policy of one rule, and a request that the policy denies. */
const denied =
  (rule: object, request: object): Make =>
  async (sandbox) => {
    const policy = {
      version: '1.0',
      name: 'Limits',
      chain_type: 'ethereum',
      rules: [{ name: 'Small', method: 'eth_signTransaction', action: 'ALLOW', ...rule }],
    };
    const { body } = await attempt(sandbox, 'createPolicy', { body: policy });
    const wallet = await created(sandbox, {
      chain_type: 'ethereum',
      policy_ids: [(body as { id: string }).id],
    });
    return calling('walletRpc', { path: { wallet_id: wallet.id }, body: request })(sandbox);
  };

const condition = (operator: string, field: string, value: unknown) => ({
  conditions: [{ field_source: 'ethereum_transaction', field, operator, value }],
});
const transaction = {
  method: 'eth_signTransaction',
  params: {
    transaction: {
      ...{ to: stranger, value: '0x64', chain_id: 1, type: 2, gas_limit: 21000, nonce: 0 },
      ...{ max_fee_per_gas: 1, max_priority_fee_per_gas: 1 },
    },
  },
};
const sentTransaction = {
  ...{ method: 'eth_sendTransaction', caip2: 'eip155:8453' },
  params: { transaction: { to: stranger, value: '0x64' } },
};

const sendingValue = (value: string) => ({
  ...sentTransaction,
  params: { transaction: { to: stranger, value } },
});

/** The id of a new resource, which a policy refers to. */
const made = async (sandbox: TestSandbox, id: OperationId, body: object): Promise<string> =>
  ((await attempt(sandbox, id, { body })).body as { id: string }).id;

/** A transfer of ERC-20 tokens. Source: ERC-20, transfer(address,uint256). */
const tokenTransfer = (amount: number) => ({
  ...transaction,
  params: {
    transaction: {
      ...transaction.params.transaction,
      value: '0x0',
      data: `0xa9059cbb${'11'.repeat(20).padStart(64, '0')}${amount.toString(16).padStart(64, '0')}`,
    },
  },
});
const transferAbi = [
  {
    ...{ type: 'function', name: 'transfer', stateMutability: 'nonpayable' },
    inputs: [
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
    ],
    outputs: [{ name: '', type: 'bool' }],
  },
];

const permitOn = (chainId: number) => ({
  method: 'eth_signTypedData_v4',
  params: {
    typed_data: {
      types: {
        EIP712Domain: [{ name: 'chainId', type: 'uint256' }],
        Note: [{ name: 'text', type: 'string' }],
      },
      ...{ primary_type: 'Note', domain: { chainId }, message: { text: 'Hello' } },
    },
  },
});

/** A transaction with the nonce of one that the chain has included. */
const usedNonce: Make = async (sandbox) => {
  const wallet = await created(sandbox, { chain_type: 'ethereum', display_name: 'Payouts' });
  await control(sandbox, 'POST', '/_sandbox/faucet', {
    ...{ chain: 'base', address: wallet.address, amount: '1' },
  });
  const path = { wallet_id: wallet.id };
  const send = (value: number, nonce: object) => ({
    ...{ method: 'eth_sendTransaction', caip2: 'eip155:8453' },
    params: { transaction: { to: stranger, value, ...nonce } },
  });
  await attempt(sandbox, 'walletRpc', { path, body: send(1, {}) });
  await control(sandbox, 'PUT', '/_sandbox/clock', { advance_ms: 60_000 });
  return calling('walletRpc', { path, body: send(2, { nonce: 0 }) })(sandbox);
};

const frozenUser: Make = async (sandbox) => {
  persons += 1;
  const linked_accounts = [{ type: 'email', address: `frozen${persons}@example.com` }];
  const { body } = await attempt(sandbox, 'createUser', { body: { linked_accounts } });
  const { id } = body as { id: string };
  const { body: session } = await control(sandbox, 'POST', `/_sandbox/users/${id}/session`);
  await attempt(sandbox, 'freezeUser', { path: { user_id: id } });
  const approval = { user_code: 'BBBB-BBBB', action: 'approve' };
  return calling('verifyOauthDevice', { body: approval }, bearer(String(session.access_token)))(sandbox);
};

const MONTH_MS = 31 * 24 * 3_600_000;

const expiredIntent: Make = async (sandbox) => {
  const { body } = await attempt(sandbox, 'createWalletRpcIntent', { path: treasury, body: hello });
  await control(sandbox, 'PUT', '/_sandbox/clock', { advance_ms: MONTH_MS });
  const path = { intent_id: (body as { intent_id: string }).intent_id };
  return calling('rejectIntent', { path, body: {} })(sandbox);
};

const exampleOf = (id: OperationId) =>
  exampleInput(documentedOperations.find(({ operationId }) => operationId === id)!) as { body?: object };

let persons = 0;

/** A user who has submitted the documents, and whose verification has not ended. */
const unverified: Make = async (sandbox) => {
  persons += 1;
  const linked_accounts = [{ type: 'email', address: `unverified${persons}@example.com` }];
  const { body } = await attempt(sandbox, 'createUser', { body: { linked_accounts } });
  const path = { user_id: (body as { id: string }).id };
  await attempt(sandbox, 'submitUserKyc', { ...exampleOf('submitUserKyc'), path });
  await control(sandbox, 'PUT', '/_sandbox/clock', { advance_ms: 5_000 });
  await attempt(sandbox, 'listUserKyc', { path, query: { provider: 'bridge', environment: 'sandbox' } });
  const id = 'createUserExternalFiatAccount';
  return calling(id, { ...exampleOf(id), path })(sandbox);
};

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const expired = (sandbox: TestSandbox) => ({ expiryMs: sandbox.clock.now() - 90_000 });

/** Each mistake, and the hint that a person reads. `…` stands for text that differs between runs. */
export const mistakes: Readonly<Record<string, readonly [make: Make, hint: string]>> = {
  'the key of another person': [
    calling('updateWallet', { path: alice, body: rename }, { signWith: [bobKey.privateKey] }),
    'Signed with key MFkw…3lsg== (seeded as `bob`), which is not an owner of wallet Alice (`ext_wal_alice`). It is a member of key quorum Treasury (`…`). Its owner is key MFkw…dBQA== (seeded as `alice`) or user alice@example.com (`…`). Sign with key MFkw…dBQA== (seeded as `alice`) or a key of user alice@example.com.',
  ],
  'no signature': [
    calling('updateWallet', { path: alice, body: rename }),
    'The request is not signed, and wallet Alice (`ext_wal_alice`) has an owner. Its owner is key MFkw…dBQA== (seeded as `alice`) or user alice@example.com (`…`). Sign `data.signature_check.expected_payloads`[0] with key MFkw…dBQA== (seeded as `alice`) or a key of user alice@example.com.',
  ],
  'a URL that ends in a slash': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      signedBy((payload) => canonicalize({ ...payload, url: `${(payload as { url: string }).url}/` })!),
    ),
    'Signature 1, by key MFkw…dBQA== (seeded as `alice`): expected a signature over `data.signature_check.expected_payloads`[0], got one over another text: the URL ended in a slash; everything else matches. Sign exactly the bytes of `data.signature_check.expected_payloads`[0], which the inspector shows too.',
  ],
  'localhost in the signed URL': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      signedBy(
        (payload) =>
          canonicalize({
            ...payload,
            url: (payload as { url: string }).url.replace('127.0.0.1', 'localhost'),
          })!,
      ),
    ),
    'Signature 1, by key MFkw…dBQA== (seeded as `alice`): expected a signature over `data.signature_check.expected_payloads`[0], got one over another text: the URL had the host `localhost` instead of `127.0.0.1:…`; everything else matches. Sign exactly the bytes of `data.signature_check.expected_payloads`[0], which the inspector shows too.',
  ],
  'members that are not in canonical order': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      signedBy((payload) => JSON.stringify(payload)),
    ),
    'Signature 1, by key MFkw…dBQA== (seeded as `alice`): expected a signature over `data.signature_check.expected_payloads`[0], got one over another text: the payload was signed as `JSON.stringify` writes it, members in the order version, url, method, headers, body: sign canonical JSON (RFC 8785), whose members are sorted; everything else matches. Sign exactly the bytes of `data.signature_check.expected_payloads`[0], which the inspector shows too.',
  ],
  'only the body signed': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      signedBy(() => JSON.stringify(rename)),
    ),
    'Signature 1, by key MFkw…dBQA== (seeded as `alice`): expected a signature over `data.signature_check.expected_payloads`[0], got one over another text: only the body was signed; everything else matches. Sign exactly the bytes of `data.signature_check.expected_payloads`[0], which the inspector shows too.',
  ],
  'a signature that is not base64': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      { headers: { 'service-authorization-signature': 'no*base64' } },
    ),
    'Signature 1: expected base64 of an ECDSA signature in DER, got one that is not base64. Send the signature as base64 of its DER; several are separated by commas.',
  ],
  'another text signed': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      signedBy(() => 'Hello'),
    ),
    "Signature 1 verifies under no key of the owner of wallet Alice (`ext_wal_alice`): another key signed, or another text was signed. Its owner is key MFkw…dBQA== (seeded as `alice`) or user alice@example.com (`…`). Compare the text that you sign with `data.signature_check.expected_payloads`[0], and your key with the owner's.",
  ],
  'the signature header of a brand': [
    calling(
      'updateWallet',
      { path: alice, body: rename },
      signedBy((payload) => canonicalize(payload)!, 'acme-authorization-signature'),
    ),
    'The headers begin with `acme-`, but this sandbox reads `service-`: expected `service-authorization-signature`, got `acme-authorization-signature`. Start the sandbox with `--prefix acme`, or rename the headers.',
  ],
  'a quorum that is short': [
    calling(
      'updateWallet',
      { path: treasury, body: rename },
      { signWith: [aliceKey.privateKey, aliceKey.privateKey] },
    ),
    'Wallet Treasury (`ext_wal_treasury`) needs 2 signatures of its owner, key quorum Treasury (`…`), and 1 of 2 sent counts: a key counts once. Add 1 more by key MFkw…3lsg== (seeded as `bob`) or key MFkw…WB7w== (seeded as `carol`), separated by commas.',
  ],
  'fewer signatures than the threshold': [
    calling('updateWallet', { path: treasury, body: rename }, { signWith: [carolKey.privateKey] }),
    'Wallet Treasury (`ext_wal_treasury`) needs 2 signatures of its owner, key quorum Treasury (`…`), and 1 of 1 sent counts. Add 1 more by key MFkw…dBQA== (seeded as `alice`) or key MFkw…3lsg== (seeded as `bob`), separated by commas.',
  ],
  'a quorum without a name that is short': [
    async (sandbox) => {
      const owner_id = await made(sandbox, 'createKeyQuorum', {
        ...{ public_keys: [aliceKey.publicKey, bobKey.publicKey, carolKey.publicKey] },
        authorization_threshold: 2,
      });
      const wallet = await created(sandbox, { chain_type: 'ethereum', display_name: 'Joint', owner_id });
      const input = { path: { wallet_id: wallet.id }, body: rename };
      return calling('updateWallet', input, { signWith: [carolKey.privateKey] })(sandbox);
    },
    'Wallet Joint (`…`) needs 2 signatures of its owner, the key quorum of alice, bob and carol (`…`), and 1 of 1 sent counts. Add 1 more by key MFkw…dBQA== (seeded as `alice`) or key MFkw…3lsg== (seeded as `bob`), separated by commas.',
  ],
  'an expired request': [
    calling('listWallets', {}, expired),
    'The header `service-request-expiry`: expected a time that has not passed: the clock of the sandbox is at … (GET /_sandbox/clock), got …, 1 minute ago. Send a later time in Unix milliseconds, and sign again.',
  ],
  'an expiry in seconds': [
    calling('listWallets', {}, (sandbox) => ({ expiryMs: Math.floor(sandbox.clock.now() / 1000) + 60 })),
    'The header `service-request-expiry`: expected Unix milliseconds: the clock of the sandbox is at … (GET /_sandbox/clock), got …, which looks like seconds. Send Unix milliseconds, such as ….',
  ],
  'an idempotency key reused with another body': [
    async (sandbox) => {
      await attempt(
        sandbox,
        'createWallet',
        { body: { chain_type: 'ethereum' } },
        { idempotencyKey: 'mistake' },
      );
      return calling(
        'createWallet',
        { body: { chain_type: 'solana' } },
        { idempotencyKey: 'mistake' },
      )(sandbox);
    },
    'The header `service-idempotency-key`: expected the same request as the first one with this key, or a new key, got a request with another path or body. Send the same request again, or use a new key.',
  ],
  'the prefix of a brand': [
    calling('listWallets', {}, (sandbox) => ({
      headers: { 'service-app-id': undefined, 'acme-app-id': sandbox.appId },
    })),
    'The headers begin with `acme-`, but this sandbox reads `service-`: expected `service-app-id`, got `acme-app-id`. Start the sandbox with `--prefix acme`, or rename the headers.',
  ],
  'no app id': [
    calling('listWallets', {}, { headers: { 'service-app-id': undefined } }),
    'The header `service-app-id`: expected the app id `custossandboxapp000000000`, as in HTTP Basic, got no such header. Send the app id in the header `service-app-id`, beside HTTP Basic.',
  ],
  'the id of another app': [
    calling('listWallets', {}, { headers: { 'service-app-id': 'otherapp' } }),
    'The header `service-app-id`: expected the app of HTTP Basic, `custossandboxapp000000000`, got `otherapp`. Send the same app id in both.',
  ],
  'a wrong secret': [
    calling('listWallets', {}, (sandbox) => ({
      headers: { authorization: basic(`${sandbox.appId}:wrong`) },
    })),
    'The app `custossandboxapp000000000`: expected an app of this sandbox with its secret, got another secret, or an id that no app has. The sandbox prints its app id and secret at the start, and GET /_sandbox/apps lists the apps.',
  ],
  'no credentials': [
    calling('listWallets', {}, { headers: { authorization: undefined } }),
    'The header `authorization`: expected HTTP Basic: `Basic` and base64 of `<app id>:<app secret>`, got no such header. Send the app id and secret with HTTP Basic; the sandbox prints both at the start.',
  ],
  'the app secret where a user is needed': [
    calling('listCards', exampleOf('listCards')),
    "The header `authorization`: expected a user's access token (`Authorization: Bearer …`), got the app secret. Get an access token by `custos token <user>`, POST /v1/passwordless/authenticate or the device flow; GET /v1/apps/{app_id}/test_credentials returns accounts for tests.",
  ],
  'a token that is no JWT': [
    calling('listCards', exampleOf('listCards'), bearer('garbage')),
    'The header `authorization`: expected a JWT, three parts in base64url with dots between them, got a malformed token. Get an access token by `custos token <user>`, POST /v1/passwordless/authenticate or the device flow; GET /v1/apps/{app_id}/test_credentials returns accounts for tests.',
  ],
  'a misspelled path': [
    sending('GET', '/v1/walets'),
    'No operation has the path `/v1/walets`. Did you mean GET /v1/wallets?',
  ],
  'a wrong method': [
    sending('DELETE', '/v1/wallets'),
    'The path `/v1/wallets`: expected the method GET, HEAD or POST, got DELETE. Use GET, HEAD or POST, or another path; /docs lists the operations.',
  ],
  'malformed JSON': [
    sending('POST', '/v1/wallets', '{"chain_type":'),
    'The body: broken JSON at line 1, column 15: expected a value. Change the body; /docs has examples.',
  ],
  'a body that is too large': [
    sending('POST', '/v1/wallets', JSON.stringify({ chain_type: 'x'.repeat(1_100_000) })),
    'The body: request body is larger than 1 MB; expected at most 1 MB, and the limits of each list. Split the request; /docs names the limit of each list.',
  ],
  'another content type': [
    calling(
      'createWallet',
      { body: { chain_type: 'ethereum' } },
      { headers: { 'content-type': 'text/plain' } },
    ),
    'The header `content-type`: expected `application/json`, in UTF-8, got `text/plain`. Send `content-type: application/json` and the text as UTF-8.',
  ],
  'a compressed body': [
    calling(
      'createWallet',
      { body: { chain_type: 'ethereum' } },
      { headers: { 'content-encoding': 'gzip' } },
    ),
    'The header `content-encoding`: expected a body that is not compressed, got `gzip`. Send the body as it is, without the header `content-encoding`.',
  ],
  'several missing fields': [
    calling('transferFromWallet', { path: acme, body: {} }),
    'The body: expected `destination` and `source`, got none of them; the object is empty. Add them; /docs has examples.',
  ],
  'a misspelled field': [
    calling('createWallet', { body: { chainType: 'ethereum' } }),
    '`/chain_type` is missing in the body, which has `chainType`. Did you mean `chain_type`?',
  ],
  'an unknown field': [
    calling('createWallet', { body: { chain_type: 'ethereum', colour: 'blue' } }),
    '`/colour` in the body: expected a property of the contract, got a name that the contract does not have. Remove `colour`, or check its spelling: /docs lists the properties.',
  ],
  'a misspelled value': [
    calling('createWallet', { body: { chain_type: 'etherium' } }),
    '`/chain_type` in the body: expected one of ethereum, solana, cosmos, stellar, sui, aptos, movement, tron, bitcoin-segwit, bitcoin-taproot, pearl, near, ton, starknet, xrpl, spark, got `etherium`. Did you mean `ethereum`?',
  ],
  'the name of a chain in place of its CAIP-2 id': [
    calling('walletRpc', { path: acme, body: { ...sentTransaction, caip2: 'base' } }),
    '`/caip2` in the body: expected a CAIP-2 id, such as `eip155:8453`, got `base`. Did you mean `eip155:8453`, the chain `base`?',
  ],
  'a transaction that names its chain only in `chain_id`': [
    calling('walletRpc', {
      path: acme,
      body: {
        method: 'eth_sendTransaction',
        params: { transaction: { ...sentTransaction.params.transaction, chain_id: 8453 } },
      },
    }),
    '`/caip2` in the body: expected the CAIP-2 id of the chain, got nothing; the transaction has `chain_id`. Add `caip2`: did you mean `eip155:8453`, the chain of `chain_id`?',
  ],
  'a decimal text in place of hex': [
    calling('walletRpc', { path: acme, body: sendingValue('1000000000000000000') }),
    '`/params/transaction/value` in the body: expected hex that begins with `0x`, or an integer, got `1000000000000000000`. Did you mean `0xde0b6b3a7640000`, the same number in hex?',
  ],
  'an amount of ether in place of wei': [
    calling('walletRpc', { path: acme, body: sendingValue('0.1') }),
    '`/params/transaction/value` in the body: expected hex that begins with `0x`, or an integer, in wei, got `0.1`. Did you mean `0x16345785d8a0000`, which is 0.1 ETH in wei?',
  ],
  'an asset in upper case': [
    calling('transferFromWallet', {
      path: acme,
      body: { ...transfer('1'), source: { asset: 'USDC', chain: 'base', amount: '1' } },
    }),
    '`/source/asset` in the body: expected an asset of `base` (`eth`, `usdc` and `eurc`), got `USDC`. Did you mean `usdc`?',
  ],
  'a misspelled chain': [
    calling('transferFromWallet', { path: acme, body: transfer('1', 'bse') }),
    '`/source/chain` in the body: expected the name of a chain, such as `base`, got `bse`. Did you mean `base`?',
  ],
  'a method in another spelling': [
    calling('walletRpc', { path: acme, body: { ...hello, method: 'personalSign' } }),
    '`/method` in the body: expected a `method` of the contract, got `personalSign`. Did you mean `personal_sign`?',
  ],
  'a method that no chain type has': [
    calling('walletRpc', { path: acme, body: { ...hello, method: 'eth_sign' } }),
    '`/method` in the body: expected one of eth_signTransaction, … and … more, got `eth_sign`. Change `method`; /docs lists them all.',
  ],
  'a chain in place of its type': [
    calling('createWallet', { body: { chain_type: 'base' } }),
    '`/chain_type` in the body: expected one of ethereum, …, got `base`. `base` is a chain of `ethereum`: did you mean `ethereum`?',
  ],
  'the beginning of two chain types': [
    calling('createWallet', { body: { chain_type: 'bitcoin' } }),
    '`/chain_type` in the body: expected one of ethereum, …, got `bitcoin`. Did you mean `bitcoin-segwit` or `bitcoin-taproot`?',
  ],
  'an amount that is a number': [
    calling('transferFromWallet', {
      path: acme,
      body: { ...transfer('1'), source: { asset: 'usdc', chain: 'base', amount: 5 } },
    }),
    '`/source/amount` in the body: expected a string with a decimal number, got the number 5. Did you mean `"5"`, in quotation marks?',
  ],
  'an owner by another name': [
    calling('createWallet', { body: { chain_type: 'ethereum', owner: { key: aliceKey.publicKey } } }),
    '`/owner` in the body: expected `user_id` or `public_key`, got an object with `key`. Did you mean `public_key`?',
  ],
  'an owner whose value shows its name': [
    calling('createWallet', { body: { chain_type: 'ethereum', owner: { owner: 'did:service:x' } } }),
    '`/owner` in the body: expected `user_id` or `public_key`, got an object with `owner`. Did you mean `user_id`?',
  ],
  'an owner without a name that fits': [
    calling('createWallet', { body: { chain_type: 'ethereum', owner: { wallet: 'x' } } }),
    '`/owner` in the body: expected `user_id` or `public_key`, got an object with `wallet`. Add `user_id` or `public_key`; /docs has examples.',
  ],
  'a misspelled wallet': [
    calling('getWallet', { path: { wallet_id: 'ext_wal_alise' } }),
    'The wallet `ext_wal_alise`: expected the id of a wallet of this app, got an id that no wallet has. Did you mean `ext_wal_alice`?',
  ],
  'the app secret as a bearer token': [
    calling('listWallets', {}, (sandbox) => bearer(sandbox.appSecret)),
    'The header `authorization`: expected HTTP Basic: `Basic` and base64 of `<app id>:<app secret>`, got `Bearer` with a text that is no token of a user; it may be the app secret. The app secret belongs into HTTP Basic, after the app id: `curl -u "<app id>:<app secret>"`.',
  ],
  'a value of the wrong type': [
    calling('createWallet', { body: { chain_type: 5 } }),
    '`/chain_type` in the body: expected a string, got the number 5. Change `chain_type`; /docs has examples.',
  ],
  'several values of wrong types': [
    calling('createWallet', { body: { chain_type: 5, display_name: true, policy_ids: 'x' } }),
    '`/chain_type` in the body: expected a string, got the number 5. `/display_name` in the body: expected a string, got true. `/policy_ids` in the body: expected an array, got a string of length 1. Change `/chain_type`, `/display_name` and `/policy_ids`; /docs has examples.',
  ],
  'wrong types and a missing field, deep in the body': [
    calling('transferFromWallet', {
      path: acme,
      body: { ...transfer('1'), destination: {}, slippage_bps: 'much' },
    }),
    '`/destination/address` in the body: expected a value, got nothing; the object is empty. `/slippage_bps` in the body: expected an integer, got a string of length 4. Add `address`; /docs has examples. Change `slippage_bps`; /docs has examples.',
  ],
  'a query beyond its limit': [
    calling('listWallets', { query: { limit: 1000 } }),
    '`limit` in the query: Query limit can be at maximum 100 records. Change `limit`; /docs has examples.',
  ],
  'an unknown wallet': [
    calling('getWallet', { path: { wallet_id: 'x'.repeat(24) } }),
    'Wallet `xxxxxxxxxxxxxxxxxxxxxxxx`: Wallet not found; expected an id that this app has. Check the id, and that the resource belongs to this app; named ones such as `ext_wal_alice` need --seed-data, and a reset or a restart in memory deletes everything else.',
  ],
  'an unknown owner': [
    calling('createWallet', { body: { chain_type: 'ethereum', owner_id: 'x'.repeat(24) } }),
    '`/owner_id` in the body: no key quorum `xxxxxxxxxxxxxxxxxxxxxxxx`. Change `owner_id`; /docs has examples.',
  ],
  'a method of another chain type': [
    calling('walletRpc', {
      path: acme,
      body: { method: 'signMessage', params: { message: 'SGVsbG8=', encoding: 'base64' } },
    }),
    '`/method` in the body: expected a method of `ethereum` (`personal_sign`, `secp256k1_sign`, `eth_signTransaction`, `eth_sendTransaction`, `eth_signTypedData_v4`, `eth_sign7702Authorization`, `eth_signUserOperation`, `wallet_sendCalls`, `exportPrivateKey`, `exportSeedPhrase`), got `signMessage`. Change `method`; /docs has examples.',
  ],
  'an unfunded wallet': [
    async (sandbox) => {
      const { id } = await created(sandbox, { chain_type: 'ethereum', display_name: 'Till' });
      return calling('transferFromWallet', { path: { wallet_id: id }, body: transfer('2.5') })(sandbox);
    },
    'The balance of wallet Till (`…`) on base: expected 2.5 ETH, got 0 ETH. Run `custos faucet … 2.5 --chain base --gas`, which adds the rest and the gas for fees.',
  ],
  'an unfunded wallet whose policy denies the transaction as well': [
    denied({ method: 'eth_sendTransaction', ...condition('lte', 'value', '10') }, sentTransaction),
    'The balance of `…` on base: expected … ETH, got 0 ETH. A policy denies the request, also with enough funds. Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.value` to be at most 0.00000000000000001 ETH (`10`), and it is 0.0000000000000001 ETH (`100`). Run `custos faucet … --chain base --gas`, which adds the rest and the gas for fees. Send a request that the rule allows, or change the rule.',
  ],
  'a chain that the transfer does not have': [
    calling('transferFromWallet', { path: acme, body: transfer('1', 'solana') }),
    '`/source/chain` in the body: expected a chain of ethereum wallets (`ethereum`, `arbitrum`, `avalanche`, `base`, …), got `solana`. Choose one of them, or a wallet of the other chain type.',
  ],
  'an archived wallet': [
    archivedAnd(({ id }) => calling('walletRpc', { path: { wallet_id: id }, body: hello })),
    `Wallet Old till (\`…\`): ${archivedHint}`,
  ],
  'an archived wallet that is found by its address': [
    archivedAnd(({ address }) => calling('getWalletByAddress', { body: { address } })),
    `The wallet: ${archivedHint}`,
  ],
  'an archived wallet that is archived again by its external id': [
    archivedAnd(({ externalId }) =>
      calling('archiveWallet', { path: { wallet_id: `ext_wal_${externalId}` } }),
    ),
    `Wallet Old till (\`ext_wal_till-…\`): ${archivedHint}`,
  ],
  'a policy without a rule for the method': [
    denied(condition('lte', 'value', '10'), hello),
    'Policy Limits (`…`): expected a rule that allows the method `personal_sign`, got no such rule. Add a rule for `personal_sign` to the policy, or use a method that it allows.',
  ],
  'a value above the limit of a policy': [
    denied(condition('lte', 'value', '10'), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.value` to be at most 0.00000000000000001 ETH (`10`), and it is 0.0000000000000001 ETH (`100`). Send a request that the rule allows, or change the rule.',
  ],
  'a recipient that a policy does not name': [
    denied(condition('eq', 'to', `0x${'22'.repeat(20)}`), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.to` to be `0x2222222222222222222222222222222222222222`, and it is `0x1111111111111111111111111111111111111111`. Send a request that the rule allows, or change the rule.',
  ],
  'a recipient outside of the list of a policy': [
    denied(condition('in', 'to', [`0x${'22'.repeat(20)}`, `0x${'33'.repeat(20)}`]), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.to` to be one of `0x2222222222222222222222222222222222222222`, `0x3333333333333333333333333333333333333333`, and it is `0x1111111111111111111111111111111111111111`. Send a request that the rule allows, or change the rule.',
  ],
  'a value that must be less': [
    denied(condition('lt', 'value', '100'), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.value` to be less than 0.0000000000000001 ETH (`100`), and it is 0.0000000000000001 ETH (`100`). Send a request that the rule allows, or change the rule.',
  ],
  'a value below the least of a policy': [
    denied(condition('gte', 'value', '101'), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.value` to be at least 0.000000000000000101 ETH (`101`), and it is 0.0000000000000001 ETH (`100`). Send a request that the rule allows, or change the rule.',
  ],
  'a value that must be more': [
    denied(condition('gt', 'value', '100'), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.value` to be more than 0.0000000000000001 ETH (`100`), and it is 0.0000000000000001 ETH (`100`). Send a request that the rule allows, or change the rule.',
  ],
  'a recipient that a policy excludes': [
    denied(condition('neq', 'to', stranger), transaction),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.to` not to be `0x1111111111111111111111111111111111111111`, and it is `0x1111111111111111111111111111111111111111`. Send a request that the rule allows, or change the rule.',
  ],
  'a recipient outside of a condition set': [
    async (sandbox) => {
      const set = await made(sandbox, 'createConditionSet', { name: 'Suppliers' });
      return denied(condition('in_condition_set', 'to', set), transaction)(sandbox);
    },
    'Policy Limits (`…`): the rule `Small` requires `ethereum_transaction.to` to be in the condition set Suppliers (`…`), and it is `0x1111111111111111111111111111111111111111`. Send a request that the rule allows, or add the value to the condition set.',
  ],
  'a sum above its limit': [
    async (sandbox) => {
      const total = await made(sandbox, 'createAggregation', {
        ...{ name: 'Sent per hour', method: 'eth_signTransaction' },
        metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
        window: { type: 'rolling', seconds: 3600 },
      });
      const upTo = { field_source: 'reference', field: `aggregation.${total}`, operator: 'lte', value: '50' };
      return denied({ conditions: [upTo] }, transaction)(sandbox);
    },
    'Policy Limits (`…`): the rule `Small` requires the sum Sent per hour (`…`), which counts this request, to be at most 0.00000000000000005 ETH (`50`), and it is 0.0000000000000001 ETH (`100`). Send less, wait until earlier amounts leave the window of the sum, or change the rule.',
  ],
  'typed data for another chain': [
    denied(
      {
        method: 'eth_signTypedData_v4',
        conditions: [
          { field_source: 'ethereum_typed_data_domain', field: 'chainId', operator: 'eq', value: '8453' },
        ],
      },
      permitOn(1),
    ),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_typed_data_domain.chainId` to be `8453`, and it is `1`. Send a request that the rule allows, or change the rule.',
  ],
  'call data with a larger amount': [
    denied(
      {
        conditions: [
          {
            ...{ field_source: 'ethereum_calldata', field: 'transfer.value', operator: 'lte', value: '5' },
            abi: transferAbi,
          },
        ],
      },
      tokenTransfer(10),
    ),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_calldata.transfer.value` to be at most `5`, and it is `10`. Send a request that the rule allows, or change the rule.',
  ],
  'more of a token than a policy allows': [
    denied(
      {
        conditions: [
          {
            ...{ field_source: 'ethereum_calldata', field: 'transfer.value', operator: 'lte' },
            ...{ value: '5000000', abi: transferAbi },
          },
        ],
      },
      {
        ...tokenTransfer(12_500_000),
        params: {
          transaction: {
            ...tokenTransfer(12_500_000).params.transaction,
            ...{ to: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', chain_id: 8453 },
          },
        },
      },
    ),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_calldata.transfer.value` to be at most 5 USDC (`5000000`), and it is 12.5 USDC (`12500000`). Send a request that the rule allows, or change the rule.',
  ],
  'call data of another function': [
    denied(
      {
        conditions: [
          {
            ...{ field_source: 'ethereum_calldata', field: 'transfer.value', operator: 'lte', value: '5' },
            abi: transferAbi,
          },
        ],
      },
      transaction,
    ),
    'Policy Limits (`…`): the rule `Small` requires `ethereum_calldata.transfer.value` to be at most `5`, and the request has no such value (calldata shorter than a selector). Send a request that the rule allows, or change the rule.',
  ],
  'a nonce that was used': [
    usedNonce,
    'The nonce of wallet Payouts (`…`): expected 1, the next one of the chain, or none, got 0, which an earlier transaction has used. Leave `nonce` out, so that the server chooses it, or send 1.',
  ],
  'a frozen user': [
    frozenUser,
    'The user `…` of the access token: expected a user who may act, got one whom the app has frozen, who can only read. Send DELETE /v1/users/…/freeze, and let the user log in again.',
  ],
  'an expired intent': [
    expiredIntent,
    'Intent `…`: expected the status `pending`, got `expired`. Propose the change again with a new intent, and collect its signatures before `expires_at`.',
  ],
  'a rule that denies': [
    denied({ ...condition('gt', 'value', '10'), name: 'Large', action: 'DENY' }, transaction),
    'Policy Limits (`…`): the rule `Large` denies `eth_signTransaction` when `ethereum_transaction.value` is 0.0000000000000001 ETH (`100`); expected a request that it does not deny. Change the request, or the rule that denies it.',
  ],
  'a user who is not verified': [
    unverified,
    'The KYC verification of user unverified… (`…`) by `bridge` (sandbox): expected the status `active`, with `payout_fiat`, got `incomplete`, where `requirements_due` is `terms_of_service`. POST /v1/users/…/kyc/tos returns the link where the terms of service are accepted; in tests POST /_sandbox/verifications with `"outcome": "terms_accepted"` decides.',
  ],
  'a fault rule': [
    async (sandbox) => {
      await control(sandbox, 'POST', '/_sandbox/faults', {
        effect: 'error',
        code: 'unavailable',
        operation: 'listPolicies',
        count: 1,
      });
      return calling('listPolicies', {})(sandbox);
    },
    'The fault rule `fault_1` injected this error. Run `custos faults clear fault_1` to remove the rule, or test how your client reacts.',
  ],
};
