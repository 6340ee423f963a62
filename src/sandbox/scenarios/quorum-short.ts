import { signMessage, signMessageCommand } from './messages.ts';
import type { Scenario } from './scenarios.ts';

export const quorumShort: Scenario = {
  name: 'quorum-short',
  summary: 'A wallet of two owners refuses a request that only one of them has signed.',
  async play(stage) {
    const { alice, bob } = stage;
    const quorum = await stage.create('key_quorum', 'Alice and Bob form a key quorum of two', {
      operation: 'createKeyQuorum',
      body: { public_keys: [alice.publicKey, bob.publicKey], authorization_threshold: 2 },
    });
    const wallet = await stage.create('wallet', 'The quorum gets a wallet', {
      operation: 'createWallet',
      body: { chain_type: 'ethereum', owner_id: quorum },
    });
    const { requestId } = await stage.call('Alice alone signs a message', signMessage(wallet, [alice]));
    return [`custos why ${requestId}`, signMessageCommand(wallet, 'alice,bob')];
  },
};
