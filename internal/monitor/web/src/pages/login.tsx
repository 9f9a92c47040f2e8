// Asks for a token, and turns it into a cookie that no script can read.

import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure, login } from '../api';

export function LoginPage({ onEnter }: { onEnter: () => void }) {
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = 'Log in – Slipway monitor';
    heading.current?.focus();
  }, []);
  const enter = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const token = String(new FormData(form).get('token') ?? '').trim();
    setBusy(true);
    setProblem('');
    try {
      await login(token);
      form.reset();
      onEnter();
    } catch (error) {
      const unknown = error instanceof Failure && error.code === 401;
      form.reset();
      form.querySelector('input')?.focus();
      setProblem(unknown ? 'The cluster does not accept this token, or not any more.' : String((error as Error).message));
    }
    setBusy(false);
  };
  return (
    <form class="login" onSubmit={enter}>
      <h1 ref={heading} tabIndex={-1}>
        Log in
      </h1>
      <p>
        You see the history of what you may list in the cluster. The easiest way in is <code>kubectl slipway ui</code>, which uses your
        kubeconfig. Otherwise paste a token that the cluster accepts, such as one of <code>kubectl create token</code>.
      </p>
      <label for="token">Token</label>
      <input id="token" name="token" type="password" required autocomplete="off" spellcheck={false} aria-describedby={problem ? 'login-problem' : undefined} />
      {problem && (
        <p id="login-problem" class="problem" role="alert">
          {problem}
        </p>
      )}
      <button type="submit" class="main" disabled={busy}>
        Log in
      </button>
    </form>
  );
}
