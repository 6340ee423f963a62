import { useSignal } from '@preact/signals';
import type { SandboxSigner } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { SentResult, SignerChoice, useSending } from '../parts/sent-result.tsx';

/** A box that sends a recorded request again, either unchanged or signed with keys of the seed data. */
export function ReplayBox({ id }: { readonly id: string }) {
  const sending = useSending();
  const chosen = useSignal<readonly SandboxSigner[]>(['alice']);
  const replay = (body: { sign_as?: SandboxSigner[] }) =>
    sending.run(() => control('replayRequest', { path: { request_id: id }, body }));
  return (
    <section aria-label="Send again" class="card">
      <h3>Send again</h3>
      <SignerChoice chosen={chosen} />
      <p class="actions">
        <button
          type="button"
          disabled={sending.isRunning.value}
          onClick={() => replay({ sign_as: [...chosen.value] })}
        >
          Signed again
        </button>
        <button type="button" disabled={sending.isRunning.value} onClick={() => replay({})}>
          As it was
        </button>
      </p>
      <SentResult sending={sending} />
    </section>
  );
}
