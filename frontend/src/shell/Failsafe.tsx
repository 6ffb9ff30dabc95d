/** A page that fails to draw takes only itself down, and says so. */
import { Component, type ReactNode } from 'react';
import { ProblemView } from '../components/ProblemView';

interface State {
  error: unknown;
}

export class Failsafe extends Component<{ children: ReactNode }, State> {
  override state: State = { error: undefined };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return <ProblemView error={this.state.error} onRetry={() => this.setState({ error: undefined })} />;
  }
}
