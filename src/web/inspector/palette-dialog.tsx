import { signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Palette } from './palette.tsx';

const isOpen = signal(false);

export function openPalette(): void {
  isOpen.value = true;
}

addEventListener('keydown', (event) => {
  if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  isOpen.value = !isOpen.value;
});

/** The dialog that finds pages, wallets, requests and operations, and runs actions. Ctrl+K or Cmd+K opens it. */
export function PaletteDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  // Its code is loaded when it is opened for the first time.
  const content = useSignal<typeof Palette | undefined>(undefined);
  useEffect(() => {
    if (isOpen.value && content.value === undefined) {
      import('./palette.tsx').then(
        (loaded) => {
          content.value = loaded.Palette;
        },
        () => {
          // The sandbox does not respond, which the foot of the menu says. The next press tries again.
          isOpen.value = false;
        },
      );
    }
    if (isOpen.value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen.value]);
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Find or do something"
      onClose={() => {
        isOpen.value = false;
      }}
      onClick={(event) => {
        if (event.target === dialog.current) isOpen.value = false;
      }}
    >
      {isOpen.value && content.value !== undefined && <content.value isOpen={isOpen} />}
    </dialog>
  );
}
