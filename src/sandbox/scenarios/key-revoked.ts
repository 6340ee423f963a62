import { signMessage, signMessageCommand } from './messages.ts';
import type { Scenario } from './scenarios.ts';

export const keyRevoked: Scenario = {
  name: 'key-revoked',
  summary: 'Bob removes the key of Alice from the key quorum of a wallet; her signature no longer counts.',
  async play(stage) {
    const { alice, bob } = stage;
    const quorum = await stage.create('key_quorum', 'Each of Alice and Bob may act alone', {
      operation: 'createKeyQuorum',
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 1 },
    });
    const wallet = await stage.create('wallet', 'Their quorum gets a wallet', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', owner_id: quorum },
    });
    await stage.call('Alice signs a message', signMessage(wallet, [alice]));
    await stage.call('Bob removes the key of Alice', {
      operation: 'updateKeyQuorum',
      path: { key_quorum_id: quorum },
      body: { public_keys: [bob.publicKey] },
      signWith: [bob],
    });
    const { requestId } = await stage.call('Alice signs the same message', signMessage(wallet, [alice]));
    return [`custos why ${requestId}`, signMessageCommand(wallet, 'bob')];
  },
};
