"""What a trained model looks at: attention as data, page and pictures, and the model without some heads."""
